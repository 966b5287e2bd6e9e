/* tfw_marshal_spans: the spans lie in the stream one behind the other, each behind its own head;
 * a stream written anew from them gives the same strings. */
#include "fuzz.h"

enum { HEAD = 5 };

static void check_spans(const uint8_t *stream, size_t len, const tfw_span *spans, size_t count) {
    uint64_t at = HEAD;
    CHECK_EQ(count, tfwi_load32(stream + 1));
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(at + HEAD, spans[i].offset);
        CHECK(spans[i].length <= len && spans[i].offset <= len - spans[i].length);
        CHECK_EQ(tfwi_load32(stream + at + 1), spans[i].length);
        at = spans[i].offset + spans[i].length;
    }
    CHECK_EQ(len, at);
}

/* The strings as bytes in a tuple, whatever they were. */
static void check_again(const uint8_t *stream, size_t len, const tfw_span *spans, size_t count) {
    uint8_t *again = fuzz_copy(stream, len);
    tfw_span *found = fuzz_alloc(count * sizeof *found);
    size_t found_count = 0;
    again[0] = '(';
    for (size_t i = 0; i < count; i++) {
        again[spans[i].offset - HEAD] = 's';
    }
    CHECK_EQ(TFW_OK, tfw_marshal_spans(again, len, found, count, &found_count));
    CHECK_EQ(count, found_count);
    CHECK(memcmp(found, spans, count * sizeof *spans) == 0);
    free(again);
    free(found);
}

static void run(input *in) {
    size_t capacity = (size_t)input_number(in, 2), len = input_left(in), count = 0;
    uint8_t *stream = fuzz_copy(in->at, len);
    tfw_span *spans = fuzz_alloc(capacity * sizeof *spans);
    int status = tfw_marshal_spans(stream, len, spans, capacity, &count);
    if (status == TFW_NEED_SPACE) {
        CHECK(count > capacity && count <= len / HEAD);
        capacity = count;
        free(spans);
        spans = fuzz_alloc(capacity * sizeof *spans);
        status = tfw_marshal_spans(stream, len, spans, capacity, &count);
    }
    CHECK(status == TFW_OK || status == TFW_E_UNSUPPORTED);
    if (status == TFW_OK) {
        CHECK(count <= capacity);
        check_spans(stream, len, spans, count);
        check_again(stream, len, spans, count);
    } else {
        CHECK_EQ(0, count);
    }
    free(stream);
    free(spans);
}

FUZZ_TARGET(run)
