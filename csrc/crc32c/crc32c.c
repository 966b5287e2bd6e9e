/* CRC-32C: the choice of a kernel, the portable one, combining and masking.
 *
 * A message is a polynomial over GF(2): its first byte has the highest powers, and inside a byte
 * the lowest bit has the highest power ("reflected"). With r the register, the inverse of a crc,
 *
 *     r(message M of n bits, from register r0) = (r0 * x^n + M * x^32) mod P
 *
 * where P is the Castagnoli polynomial. All else follows: pieces may be computed apart and added
 * (XOR) after a multiplication by a power of x, and zeros before a message change nothing when
 * the register is 0. The kernels differ in how they do these multiplications: by table, by the
 * crc32 instructions, by carry-less products.
 */
#include "crc32c/crc32c.h"

#include "base/cpu.h"
#include "crc32c/crc32c_tables.h"

#include <stdatomic.h>

/* ---- The portable kernel: 16 bytes at a time by table ("slicing") --------------------------- */

/* What four bytes do to the register when k more follow them. */
TFWI_INLINE uint32_t slice4(uint32_t bytes, size_t k) {
    return slices[k + 3][bytes & 0xff] ^ slices[k + 2][(bytes >> 8) & 0xff] ^
           slices[k + 1][(bytes >> 16) & 0xff] ^ slices[k][bytes >> 24];
}

/* What eight bytes do when k more follow them. */
TFWI_INLINE uint32_t slice8(uint32_t state, uint64_t bytes, size_t k) {
    return slice4(state ^ (uint32_t)bytes, k + 4) ^ slice4((uint32_t)(bytes >> 32), k);
}

TFWI_INLINE uint32_t crc_word(uint32_t state, uint64_t word) { return slice8(state, word, 0); }

TFWI_INLINE uint32_t crc_bytes(uint32_t state, const uint8_t *p, size_t len) {
    for (; len >= 16; p += 16, len -= 16) {
        state = slice8(state, tfwi_load64(p), 8) ^ slice8(0, tfwi_load64(p + 8), 0);
    }
    if (len >= 8) {
        state = crc_word(state, tfwi_load64(p));
        p += 8;
        len -= 8;
    }
    for (; len > 0; p++, len--) {
        state = (state >> 8) ^ slices[0][(state ^ *p) & 0xff];
    }
    return state;
}

static uint32_t portable_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

static uint32_t portable_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

/* The product of polynomials without carries, from ordinary products: operands that keep one bit
 * in four leave room for the carries (at most 8 ones add up), which the last mask drops. */
static uint64_t carryless_product(uint32_t a, uint32_t b) {
    const uint64_t every_fourth = UINT64_C(0x1111111111111111);
    uint64_t product = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < 4; i++) {
            sum ^= (a & (every_fourth << i)) * (b & (every_fourth << ((k - i) & 3)));
        }
        product |= sum & (every_fourth << k);
    }
    return product;
}

/* a * b mod P. The product has 63 bits, reflected: one shift aligns it. Its high powers, in the
 * low half, are reduced as four message bytes would be. */
static uint32_t portable_multiply(uint32_t a, uint32_t b) {
    uint64_t product = carryless_product(a, b) << 1;
    return (uint32_t)(product >> 32) ^ slice4((uint32_t)product, 0);
}

/* Most places are ruled out by their length alone. */
static size_t portable_find_header(const uint8_t *data, size_t count, uint64_t limit) {
    for (size_t i = 0; i < count; i++) {
        if (TFWI_UNLIKELY(tfwi_load64(data + i) <= limit) &&
            tfwi_crc32c_mask(portable_crc8(data + i)) == tfwi_load32(data + i + 8)) {
            return i;
        }
    }
    return count;
}

#define TARGET
#include "records/scan_loop.h"

static const tfwi_crc32c_kernel portable = {
    "portable",        0,
    portable_crc,      portable_crc8,
    portable_multiply, portable_find_header,
    scan,
};

/* ---- The choice ----------------------------------------------------------------------------- */

static const tfwi_crc32c_kernel *const kernels[] = {
#ifdef TFWI_X86
    &tfwi_crc32c_avx512,
    &tfwi_crc32c_sse42,
#endif
#ifdef TFWI_ARM64
    &tfwi_crc32c_armv8,
#endif
    &portable,
};

enum { NUM_KERNELS = sizeof kernels / sizeof kernels[0] };

/* NULL until the first use. Relaxed is enough: what it points to is constant, and threads that
 * resolve at once find the same. */
static _Atomic(const tfwi_crc32c_kernel *) current;

const tfwi_crc32c_kernel *tfwi_crc32c_kernel_at(size_t i) {
    return i < NUM_KERNELS ? kernels[i] : NULL;
}

bool tfwi_crc32c_supported(const tfwi_crc32c_kernel *kernel) {
    return (kernel->features & ~tfwi_cpu_features()) == 0;
}

static TFWI_NOINLINE const tfwi_crc32c_kernel *resolve(void) {
    const tfwi_crc32c_kernel *const *best = kernels;
    while (!tfwi_crc32c_supported(*best)) {
        best++; /* the last one, portable, needs nothing */
    }
    atomic_store_explicit(&current, *best, memory_order_relaxed);
    return *best;
}

const tfwi_crc32c_kernel *tfwi_crc32c_current(void) {
    const tfwi_crc32c_kernel *kernel = atomic_load_explicit(&current, memory_order_relaxed);
    return TFWI_LIKELY(kernel != NULL) ? kernel : resolve();
}

const char *tfw_crc32c_kernel(void) { return tfwi_crc32c_current()->name; }

const char *tfw_crc32c_kernel_name(size_t i, bool *out_supported) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_kernel_at(i);
    if (out_supported != NULL) {
        *out_supported = kernel != NULL && tfwi_crc32c_supported(kernel);
    }
    return kernel != NULL ? kernel->name : NULL;
}

int tfw_crc32c_select(const char *name) {
    if (name == NULL) {
        resolve();
        return TFW_OK;
    }
    for (size_t i = 0; i < NUM_KERNELS; i++) {
        if (strcmp(name, kernels[i]->name) == 0) {
            if (!tfwi_crc32c_supported(kernels[i])) {
                return TFW_E_UNSUPPORTED;
            }
            atomic_store_explicit(&current, kernels[i], memory_order_relaxed);
            return TFW_OK;
        }
    }
    return TFW_E_ARGUMENT;
}

uint32_t tfw_crc32c(uint32_t crc, const void *data, size_t len) {
    return tfwi_crc32c_current()->crc(crc, data != NULL ? data : "", len);
}

/* ---- Masking and combining ------------------------------------------------------------------ */

uint32_t tfw_crc32c_mask(uint32_t crc) { return tfwi_crc32c_mask(crc); }

uint32_t tfw_crc32c_unmask(uint32_t masked) { return tfwi_crc32c_unmask(masked); }

/* The order of x: its powers repeat after that many. */
#define ORDER_OF_X UINT64_C(0x7fffffff)

uint32_t tfw_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    uint64_t exponent = 8 * (len_b % ORDER_OF_X) % ORDER_OF_X;
    for (size_t digit = 0; exponent != 0; digit++, exponent >>= 8) {
        crc_a = kernel->multiply(crc_a, powers[digit][exponent & 0xff]);
    }
    return crc_a ^ crc_b;
}
