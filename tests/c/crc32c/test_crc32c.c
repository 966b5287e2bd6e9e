/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: every kernel against the definition, by itself and through the selection. */
#define _GNU_SOURCE

#include "check.h"
#include "base/cpu.h"
#include "crc32c/crc32c.h"

#ifdef TFW_TEST_QUICK /* for emulated CPUs */
enum { ALIGNMENT_STEP = 5, CUT_STEP = 7, LONG_LEN = 200 << 10 };
#else
enum { ALIGNMENT_STEP = 1, CUT_STEP = 3, LONG_LEN = 3 << 20 };
#endif
enum { SHORT_LEN = 1100, CUT_LEN = 2048 };

static const uint32_t initial_values[] = {0, UINT32_MAX, 0x12345678};

/* The definition, bit by bit. */
static uint32_t reference(uint32_t crc, const uint8_t *data, size_t len) {
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

static void fill(uint8_t *data, size_t len) {
    uint64_t state = 0x5eed;
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(check_random(&state) >> 56);
    }
}

/* One check for many comparisons; the first that fails is told. */
static bool same(const tfwi_crc32c_kernel *kernel, uint32_t expected, uint32_t crc,
                 const uint8_t *data, size_t len) {
    uint32_t actual = kernel->crc(crc, data, len);
    if (expected != actual) {
        fprintf(stderr, "%s: %zu bytes at %p, from 0x%08x: expected 0x%08x, found 0x%08x\n",
                kernel->name, len, (const void *)data, crc, expected, actual);
    }
    return expected == actual;
}

/* ---- Every kernel --------------------------------------------------------------------------- */

static void check_lengths_and_alignments(const tfwi_crc32c_kernel *kernel) {
    static uint8_t buffer[64 + SHORT_LEN];
    fill(buffer, sizeof buffer);
    for (size_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < 64; at += ALIGNMENT_STEP) {
            uint32_t expected = initial_values[i];
            bool good = true;
            for (size_t len = 0; len <= SHORT_LEN && good; len++) {
                good = same(kernel, expected, initial_values[i], buffer + at, len);
                expected = reference(expected, buffer + at + len, len < SHORT_LEN);
            }
            CHECK(good);
        }
    }
}

/* Bytes [i, j), continued from the checksum of [0, i), give the checksum of [0, j): with that, any
 * two cuts anywhere. Steps are odd, so that every alignment comes. */
static void check_slices(const tfwi_crc32c_kernel *kernel) {
    static uint8_t buffer[CUT_LEN];
    static uint32_t prefixes[CUT_LEN + 1];
    fill(buffer, sizeof buffer);
    for (size_t i = 0; i < CUT_LEN; i++) {
        prefixes[i + 1] = reference(prefixes[i], buffer + i, 1);
    }
    bool good = true;
    for (size_t i = 0; i <= CUT_LEN && good; i += CUT_STEP) {
        for (size_t j = i; j <= CUT_LEN && good; j++) {
            good = same(kernel, prefixes[j], prefixes[i], buffer + i, j - i);
        }
    }
    CHECK(good);
}

/* Not one byte before or after the data is read. */
static void check_bounds(const tfwi_crc32c_kernel *kernel) {
    for (int at_end = 0; at_end < 2; at_end++) {
        const size_t size = 8192;
        guarded g = guarded_new(size, at_end != 0);
        fill(g.data, size);
        for (size_t len = 0; len <= size; len += len < SHORT_LEN ? 1 : 61) {
            const uint8_t *data = at_end != 0 ? g.data + size - len : g.data;
            CHECK(same(kernel, reference(0, data, len), 0, data, len));
        }
        CHECK(same(kernel, 0, 0, at_end != 0 ? g.data + size : g.data, 0));
        const uint8_t *word = at_end != 0 ? g.data + size - 8 : g.data;
        CHECK_EQ(reference(0, word, 8), kernel->crc8(word));
        guarded_free(g);
    }
}

static void check_long_data(const tfwi_crc32c_kernel *kernel) {
    uint8_t *data = malloc(LONG_LEN);
    uint32_t *prefixes = malloc((LONG_LEN + 1) * sizeof *prefixes);
    if (data == NULL || prefixes == NULL) {
        abort();
    }
    fill(data, LONG_LEN);
    prefixes[0] = 0;
    for (size_t i = 0; i < LONG_LEN; i++) {
        prefixes[i + 1] = reference(prefixes[i], data + i, 1);
    }
    for (size_t cut = 0; cut < 100; cut++) {
        size_t begin = cut % 67, end = LONG_LEN - cut * cut;
        CHECK(same(kernel, prefixes[end], prefixes[begin], data + begin, end - begin));
    }
    uint64_t state = 7;
    for (int i = 0; i < 300; i++) { /* around the sizes of blocks */
        size_t begin = check_random(&state) % (LONG_LEN / 2);
        size_t end = begin + check_random(&state) % 20000;
        CHECK(same(kernel, prefixes[end], prefixes[begin], data + begin, end - begin));
    }
    free(prefixes);
    free(data);
}

/* RFC 3720, B.4, and the check value of the catalogues. */
static void check_known_values(const tfwi_crc32c_kernel *kernel) {
    static const uint8_t read_pdu[48] = {0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14,
                                         [31] = 0x18, [32] = 0x28, [40] = 0x02};
    uint8_t data[32];
    memset(data, 0, 32);
    CHECK_EQ(0x8a9136aa, kernel->crc(0, data, 32));
    memset(data, 0xff, 32);
    CHECK_EQ(0x62a8ab43, kernel->crc(0, data, 32));
    for (uint8_t i = 0; i < 32; i++) {
        data[i] = i;
    }
    CHECK_EQ(0x46dd794e, kernel->crc(0, data, 32));
    for (uint8_t i = 0; i < 32; i++) {
        data[i] = (uint8_t)(31 - i);
    }
    CHECK_EQ(0x113fdb5c, kernel->crc(0, data, 32));
    CHECK_EQ(0xd9963a56, kernel->crc(0, read_pdu, 48));
    CHECK_EQ(0xe3069283, kernel->crc(0, "123456789", 9));
    CHECK_EQ(0xabcdef01, kernel->crc(0xabcdef01, "", 0));
}

/* Bit by bit: the highest bit stands for x^0. */
static uint32_t slow_product(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        product ^= (a & bit) != 0 ? b : 0;
        b = (b >> 1) ^ ((b & 1) != 0 ? UINT32_C(0x82f63b78) : 0);
    }
    return product;
}

static void check_products(const tfwi_crc32c_kernel *kernel) {
    const uint32_t extreme[] = {0, 1, UINT32_C(1) << 31, UINT32_MAX};
    uint64_t state = 5;
    bool good = true;
    for (size_t i = 0; i < 1000; i++) {
        uint32_t a = i < 16 ? extreme[i / 4] : (uint32_t)check_random(&state);
        uint32_t b = i < 16 ? extreme[i % 4] : (uint32_t)check_random(&state);
        good &= slow_product(a, b) == kernel->multiply(a, b);
    }
    CHECK(good);
}

static void test_every_kernel(void) {
    for (size_t i = 0; tfwi_crc32c_kernel_at(i) != NULL; i++) {
        const tfwi_crc32c_kernel *kernel = tfwi_crc32c_kernel_at(i);
        bool supported = tfwi_cpu_has(kernel->features);
        printf("kernel %s: %s\n", kernel->name, supported ? "runs" : "not supported here");
        if (supported) {
            check_known_values(kernel);
            check_lengths_and_alignments(kernel);
            check_slices(kernel);
            check_bounds(kernel);
            check_long_data(kernel);
            check_products(kernel);
        }
    }
}

/* ---- Selection ------------------------------------------------------------------------------ */

static void test_the_best_supported_kernel_is_the_default(void) {
    bool supported = false;
    size_t best = 0;
    while (tfw_crc32c_kernel_name(best, &supported) != NULL && !supported) {
        best++;
    }
    CHECK_EQ(0, strcmp(tfw_crc32c_kernel_name(best, NULL), tfw_crc32c_kernel()));
}

static void test_each_kernel_can_be_forced(void) {
    uint8_t data[777];
    fill(data, sizeof data);
    uint32_t expected = reference(0, data, sizeof data);
    size_t count = 0;
    bool supported = false;
    for (const char *name; (name = tfw_crc32c_kernel_name(count, &supported)) != NULL; count++) {
        CHECK_EQ(supported ? TFW_OK : TFW_E_UNSUPPORTED, tfw_crc32c_select(name));
        CHECK_EQ(supported, strcmp(name, tfw_crc32c_kernel()) == 0);
        CHECK_EQ(expected, tfw_crc32c(0, data, sizeof data));
        CHECK_EQ(0xabcdef01, tfw_crc32c(0xabcdef01, NULL, 0));
    }
    CHECK(count >= 1);
    CHECK_EQ(0, strcmp("portable", tfw_crc32c_kernel_name(count - 1, &supported)));
    CHECK(supported);
    CHECK(tfw_crc32c_kernel_name(count, &supported) == NULL);
    CHECK(!supported);
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
    test_the_best_supported_kernel_is_the_default();
}

static void test_an_unknown_kernel_changes_nothing(void) {
    CHECK_EQ(TFW_OK, tfw_crc32c_select("portable"));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_crc32c_select("fastest"));
    CHECK_EQ(TFW_E_ARGUMENT, tfw_crc32c_select(""));
    CHECK_EQ(0, strcmp("portable", tfw_crc32c_kernel()));
    CHECK_EQ(TFW_OK, tfw_crc32c_select(NULL));
}

/* ---- Combining and masking ------------------------------------------------------------------ */

static void test_combining_is_concatenation(void) {
    static uint8_t data[3000];
    fill(data, sizeof data);
    uint32_t whole = reference(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        uint32_t a = reference(0, data, cut), b = tfw_crc32c(0, data + cut, sizeof data - cut);
        CHECK_EQ(whole, tfw_crc32c_combine(a, b, sizeof data - cut));
    }
}

static void test_combining_is_associative_for_any_length(void) {
    uint64_t state = 3;
    for (int i = 0; i < 1000; i++) {
        uint32_t a = (uint32_t)check_random(&state), b = (uint32_t)check_random(&state);
        uint32_t c = (uint32_t)check_random(&state);
        uint64_t len_b = check_random(&state) >> (1 + i % 60);
        uint64_t len_c = check_random(&state) >> (1 + i / 60);
        CHECK_EQ(tfw_crc32c_combine(tfw_crc32c_combine(a, b, len_b), c, len_c),
                 tfw_crc32c_combine(a, tfw_crc32c_combine(b, c, len_c), len_b + len_c));
    }
}

/* The powers of x repeat after 2^31 - 1, so that many bytes of B carry A exactly round. */
static void test_combining_with_extreme_lengths(void) {
    const uint64_t order = UINT64_C(0x7fffffff);
    CHECK_EQ(0x1234, tfw_crc32c_combine(0x1234, 0, 0));
    CHECK_EQ(0x1234, tfw_crc32c_combine(0x1234, 0, order));
    CHECK_EQ(0x1234 ^ 0x77, tfw_crc32c_combine(0x1234, 0x77, UINT64_MAX / order * order));
    CHECK_EQ(tfw_crc32c_combine(0x1234, 0x77, UINT64_MAX % order),
             tfw_crc32c_combine(0x1234, 0x77, UINT64_MAX));
}

static void test_masks(void) {
    CHECK_EQ(0xa282ead8, tfw_crc32c_mask(0));
    CHECK_EQ(0xc78ab0e5, tfw_crc32c_mask(tfw_crc32c(0, "123456789", 9)));
    static const uint64_t lengths[] = {0, 1, 84}; /* as headers hold them */
    static const uint32_t masked[] = {0x07980329, 0x41de7501, 0x8745515f};
    for (size_t i = 0; i < 3; i++) {
        uint8_t header[8];
        tfwi_store64(header, lengths[i]);
        CHECK_EQ(masked[i], tfw_crc32c_mask(tfw_crc32c(0, header, 8)));
        CHECK_EQ(masked[i], tfwi_crc32c_mask(tfwi_crc32c_current()->crc8(header)));
    }
    uint64_t state = 5;
    for (int i = 0; i < 1000; i++) {
        uint32_t crc = (uint32_t)check_random(&state);
        CHECK(crc != tfw_crc32c_mask(crc));
        CHECK(crc != tfw_crc32c_mask(tfw_crc32c_mask(crc)));
        CHECK_EQ(crc, tfw_crc32c_unmask(tfw_crc32c_mask(crc)));
        CHECK_EQ(crc, tfw_crc32c_mask(tfw_crc32c_unmask(crc)));
    }
}

int main(void) {
    RUN(test_the_best_supported_kernel_is_the_default);
    RUN(test_every_kernel);
    RUN(test_each_kernel_can_be_forced);
    RUN(test_an_unknown_kernel_changes_nothing);
    RUN(test_combining_is_concatenation);
    RUN(test_combining_is_associative_for_any_length);
    RUN(test_combining_with_extreme_lengths);
    RUN(test_masks);
    return check_report("test_crc32c");
}
