/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses of keys: a key that is asked for is never taken for one that is not, and keys as people
 * name them are guessed right. */
#include "check.h"
#include "parse/schema.h"

enum { MOST = 5000, LONGEST = 160 };

static char names[MOST][LONGEST];
static tfw_feature features[MOST];

/* Names numbered by a format; returns how many are guessed wrong. */
static size_t wrong_guesses(size_t count, const char *format) {
    for (size_t i = 0; i < count; i++) {
        memset(names[i], 0, LONGEST);
        int len = snprintf(names[i], LONGEST, format, (unsigned)i);
        features[i] = (tfw_feature){.name = names[i], .name_len = (uint64_t)len, .kind = TFW_INT64,
                                    .layout = TFW_DENSE, .count = 1};
    }
    tfw_schema *schema;
    CHECK_EQ(TFW_OK, tfw_schema_create(features, count, SEED, &schema, NULL));
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len = (size_t)features[i].name_len;
        const uint8_t *name = (const uint8_t *)names[i];
        size_t guess = len < TFWI_GUESSED_LEN ? tfwi_guess(&schema->guesses, name, len) : i;
        CHECK(guess < count); /* not: nobody asked for it */
        wrong += guess != i;
        memset(names[i] + len, 'x', LONGEST - len); /* what follows the key is not looked at */
        CHECK(len >= TFWI_GUESSED_LEN || tfwi_guess(&schema->guesses, name, len) == guess);
    }
    uint8_t other[UINT8_MAX + 1];
    memset(other, '?', sizeof other);
    for (size_t len = 0; len <= UINT8_MAX && count != 0; len++) {
        CHECK(tfwi_guess(&schema->guesses, other, len) <= count);
    }
    tfw_schema_free(schema);
    return wrong;
}

static void test_usual_keys_are_guessed_right(void) {
    static const char *const formats[] = {
        "c_%02u", "feature%u", "user_%03u_embedding_of_eight", "%u",
        "%04u_a_number_at_the_beginning",
        "a_key_of_64_bytes_with_its_number_%03u_in_the_midst_of_other_bytes"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (size_t count = 1; count <= 64; count += 7) {
            CHECK_EQ(0, wrong_guesses(count, formats[i]));
        }
        CHECK(wrong_guesses(300, formats[i]) <= 300 / 50);
        CHECK(wrong_guesses(4096, formats[i]) <= 4096 / 10);
    }
}

/* They are found by their hash. */
static void test_keys_that_share_a_slot_are_guessed_wrong(void) {
    CHECK_EQ(39, wrong_guesses(40, "%02u_and_more_bytes_than_a_window_can_be_away_from_the_end"));
    CHECK_EQ(0, wrong_guesses(40, "%0130u")); /* too long to be guessed */
    CHECK_EQ(MOST - 1, wrong_guesses(MOST, "k_%u")); /* too many: all are taken for the first */
    CHECK_EQ(0, wrong_guesses(0, "%u"));
}

int main(void) {
    RUN(test_usual_keys_are_guessed_right);
    RUN(test_keys_that_share_a_slot_are_guessed_wrong);
    return check_report("guess");
}
