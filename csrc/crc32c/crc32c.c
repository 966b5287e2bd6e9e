/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: the choice of a kernel, combining and masking.
 *
 * A message is a polynomial over GF(2): its first byte has the highest powers, and inside a byte
 * the lowest bit has the highest power ("reflected"). With r the register, the inverse of a crc,
 *
 *     r(message M of n bits, from register r0) = (r0 * x^n + M * x^32) mod P
 *
 * where P is the Castagnoli polynomial. All else follows: parts may be computed separately and
 * added (XOR) after a multiplication by a power of x, and zeros before a message change nothing
 * when the register is 0. The kernels differ in how they do these multiplications: by table, by the
 * crc32 instructions, by carry-less products. */
#include "crc32c/crc32c.h"

#include "base/kernels.h"
#include "crc32c/crc32c_tables.h"

#include <stdatomic.h>

/* ---- The choice ----------------------------------------------------------------------------- */

static const tfwi_crc32c_kernel *const kernels[] = {
#ifdef TFWI_X86
    &tfwi_crc32c_avx512,
    &tfwi_crc32c_avx2,
    &tfwi_crc32c_sse42,
#endif
#ifdef TFWI_ARM64
    &tfwi_crc32c_armv8,
#endif
    &tfwi_crc32c_portable,
};

TFWI_DEFINE_CHOICE(tfwi_crc32c_kernel, kernels)

/* NULL until the first use. Relaxed order is enough: the kernels are constants, and threads that
 * choose at the same time find the same one. */
static _Atomic(const tfwi_crc32c_kernel *) current;

static TFWI_NOINLINE const tfwi_crc32c_kernel *choose_kernel(void) {
    const tfwi_crc32c_kernel *best = tfwi_crc32c_kernel_best();
    atomic_store_explicit(&current, best, memory_order_relaxed);
    return best;
}

const tfwi_crc32c_kernel *tfwi_crc32c_current(void) {
    const tfwi_crc32c_kernel *kernel = atomic_load_explicit(&current, memory_order_relaxed);
    return TFWI_LIKELY(kernel != NULL) ? kernel : choose_kernel();
}

const char *tfw_crc32c_kernel(void) { return tfwi_crc32c_current()->name; }

const char *tfw_crc32c_kernel_name(size_t i, bool *out_supported) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_kernel_at(i);
    if (out_supported != NULL) {
        *out_supported = kernel != NULL && tfwi_cpu_has(kernel->features);
    }
    return kernel != NULL ? kernel->name : NULL;
}

int tfw_crc32c_select(const char *name) {
    if (name == NULL) {
        choose_kernel();
        return TFW_OK;
    }
    const tfwi_crc32c_kernel *kernel;
    for (size_t i = 0; (kernel = tfwi_crc32c_kernel_at(i)) != NULL; i++) {
        if (strcmp(name, kernel->name) == 0) {
            if (!tfwi_cpu_has(kernel->features)) {
                return TFW_E_UNSUPPORTED;
            }
            atomic_store_explicit(&current, kernel, memory_order_relaxed);
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

uint32_t tfw_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b) {
    const tfwi_crc32c_kernel *kernel = tfwi_crc32c_current();
    uint64_t exponent = 8 * (len_b % TFWI_ORDER_OF_X) % TFWI_ORDER_OF_X;
    for (size_t digit = 0; exponent != 0; digit++, exponent >>= 4) {
        crc_a = kernel->multiply(crc_a, powers[digit][exponent & 0xf]);
    }
    return crc_a ^ crc_b;
}
