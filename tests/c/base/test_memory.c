/* SPDX-License-Identifier: Apache-2.0 */
/* The growable array. */
#include "check.h"

#include "base/memory.h"

static void test_the_capacity_doubles_at_least(void) {
    tfwi_int64s array = {.hint = 10};
    CHECK(TFWI_RESERVE(array, 0) && array.of == NULL);
    CHECK(TFWI_RESERVE(array, 1) && array.capacity == 10);
    for (; array.count < 1000; array.count++) {
        CHECK(TFWI_RESERVE_MORE(array, 1));
        array.of[array.count] = (int64_t)array.count;
    }
    CHECK_EQ(1280, array.capacity);
    CHECK(TFWI_RESERVE(array, 5000) && array.capacity == 5000);
    CHECK(array.of[0] == 0 && array.of[999] == 999);
    tfw_free(array.of);
}

static void test_a_failure_keeps_the_array(void) {
    tfwi_int64s array = {.hint = 0};
    CHECK(TFWI_RESERVE(array, 3));
    array.of[2] = 7;
    array.count = 3;
    CHECK(!TFWI_RESERVE(array, SIZE_MAX / sizeof(int64_t) + 1));
    CHECK(!TFWI_RESERVE(array, UINT64_MAX));
    tfwi_test_fail_allocation = 0;
    CHECK(!TFWI_RESERVE_MORE(array, 1));
    CHECK_EQ(-1, tfwi_test_fail_allocation);
    CHECK(array.capacity == 3 && array.of[2] == 7);
    CHECK(TFWI_RESERVE_MORE(array, 1) && array.capacity == 6 && array.of[2] == 7);
    tfw_free(array.of);
}

int main(void) {
    RUN(test_the_capacity_doubles_at_least);
    RUN(test_a_failure_keeps_the_array);
    return check_report("memory");
}
