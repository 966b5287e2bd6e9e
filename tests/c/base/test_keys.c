/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by number: found again, kept apart, and not let collide without end. */
#include "check.h"
#include "base/keys.h"

enum { MANY = 1 << 16, SAME_SLOT = 65 };

static int find(tfwi_keys *keys, uint32_t name, uint32_t *out_number) {
    uint8_t bytes[sizeof name];
    tfwi_store32(bytes, name);
    return tfwi_keys_find(keys, bytes, sizeof bytes, out_number);
}

static void every_key_keeps_its_number(void) {
    tfwi_keys keys = {0};
    uint32_t number;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            CHECK(find(&keys, i, &number) == TFW_OK && number == i);
        }
    }
    CHECK_EQ(MANY, keys.count);
    CHECK_EQ(TFW_OK, tfwi_keys_find(&keys, (const uint8_t *)"", 0, &number));
    CHECK_EQ(MANY, number);
    tfwi_keys_clear(&keys);
    CHECK(keys.count == 0 && keys.of == NULL);
}

/* More keys for one slot of the table than are looked through, as somebody may choose them. */
static void keys_made_to_collide_are_refused(void) {
    tfwi_keys all = {0}, keys = {0};
    uint32_t number, chosen = 0;
    int status = TFW_OK;
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_EQ(TFW_OK, find(&all, i, &number));
    }
    for (uint32_t i = 0; i < MANY && chosen < SAME_SLOT; i++) {
        if (all.of[i].hash % 256 == 0) { /* the table has 256 slots by then */
            CHECK_EQ(TFW_OK, status);
            status = find(&keys, i, &number);
            chosen++;
        }
    }
    CHECK_EQ(SAME_SLOT, chosen);
    CHECK_EQ(TFW_E_UNSUPPORTED, status);
    CHECK_EQ(SAME_SLOT - 1, keys.count);
    CHECK_EQ(TFW_OK, find(&keys, 1, &number)); /* others are still welcome */
    tfwi_keys_clear(&all);
    tfwi_keys_clear(&keys);
}

/* The same keys are no trouble under another seed, so that nobody can choose them beforehand. */
static void keys_that_collide_under_a_seed_do_not_under_others(void) {
    tfwi_keys all = {0};
    uint32_t number, chosen[SAME_SLOT], count = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_EQ(TFW_OK, find(&all, i, &number));
    }
    for (uint32_t i = 0; i < MANY && count < SAME_SLOT; i++) {
        if (all.of[i].hash % 256 == 0) {
            chosen[count++] = i;
        }
    }
    for (uint64_t seed = 1; seed < 200; seed++) {
        tfwi_keys keys = {.seed = tfwi_seed_of(seed * SEED)};
        for (uint32_t i = 0; i < count; i++) {
            CHECK(find(&keys, chosen[i], &number) == TFW_OK && number == i);
        }
        tfwi_keys_clear(&keys);
        CHECK(keys.seed.a == tfwi_seed_of(seed * SEED).a); /* it outlives the keys */
    }
    tfwi_keys_clear(&all);
}

/* Names that count up, as those of generated columns: the hash spreads them under every seed. */
static void keys_that_count_up_do_not_collide(void) {
    static const char *const formats[] = {"%u", "key %u", "feature_%u", "image/object/bbox/%04u"};
    for (uint64_t seed = 1; seed < 200; seed++) {
        tfwi_keys keys = {.seed = tfwi_seed_of(seed * SEED)};
        for (uint32_t i = 0; i < 4000; i++) {
            char name[64];
            uint32_t number;
            size_t len = (size_t)snprintf(name, sizeof name, formats[seed % 4], i);
            CHECK_EQ(TFW_OK, tfwi_keys_find(&keys, (const uint8_t *)name, len, &number));
        }
        tfwi_keys_clear(&keys);
    }
}

static void failing_memory_is_reported(void) {
    long n = 0;
    int status;
    do {
        tfwi_keys keys = {0};
        uint32_t number;
        tfwi_test_fail_allocation = n++;
        status = find(&keys, 1, &number);
        tfwi_test_fail_allocation = -1;
        CHECK(status == TFW_OK || status == TFW_E_MEMORY);
        CHECK_EQ(TFW_OK, find(&keys, 1, &number));
        CHECK_EQ(0, number);
        tfwi_keys_clear(&keys);
    } while (status != TFW_OK);
    CHECK_EQ(4, n); /* the table, the keys and the name were refused */
}

/* Names of every length up to 40, in memory of just their size. */
static void a_name_is_told_from_others(void) {
    for (size_t len = 0; len <= 40; len++) {
        uint8_t *one = malloc(len + (len == 0)), *other = malloc(len + (len == 0));
        for (size_t i = 0; i < len; i++) {
            one[i] = other[i] = (uint8_t)(i * 37);
        }
        const tfwi_key key = {.name = one, .len = len};
        CHECK(tfwi_is_named(&key, other, len));
        CHECK(len == 0 || !tfwi_is_named(&key, other, len - 1));
        for (size_t i = 0; i < len; i++) {
            for (int bit = 0; bit < 8; bit++) {
                other[i] ^= (uint8_t)(1 << bit);
                CHECK(!tfwi_is_named(&key, other, len));
                other[i] ^= (uint8_t)(1 << bit);
            }
        }
        free(one);
        free(other);
    }
}

int main(void) {
    RUN(every_key_keeps_its_number);
    RUN(keys_made_to_collide_are_refused);
    RUN(keys_that_collide_under_a_seed_do_not_under_others);
    RUN(keys_that_count_up_do_not_collide);
    RUN(failing_memory_is_reported);
    RUN(a_name_is_told_from_others);
    return check_report("keys");
}
