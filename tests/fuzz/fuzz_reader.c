/* tfw_reader against the slow model of what a reader should find: every policy, fed in pieces or
 * reading a file whose reads are short and interrupted, in small batches, with a failing
 * allocation. The model knows no pieces, so two ways to feed never differ. */
#include "script.h"

#include <errno.h>

static uint64_t pread_seed;

/* A read that returns less than asked for, now and then nothing but EINTR. */
static ssize_t short_pread(int fd, void *out, size_t len, off_t offset) {
    uint64_t random = check_random(&pread_seed);
    if (random % 8 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t most = (size_t)(random >> 8) % 600 + 1;
    return pread(fd, out, len < most ? len : most, offset);
}

/* One file for all runs. */
static int file_with(const file *f) {
    static FILE *stream;
    if (stream == NULL) {
        stream = tmpfile();
    }
    int fd = stream != NULL ? fileno(stream) : -1;
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, f->data, f->len, 0) != (ssize_t)f->len) {
        abort();
    }
    return fd;
}

static void check_skipped(const outcome *o, size_t len) {
    for (size_t i = 0; i < o->region_count; i++) {
        CHECK(o->regions[i].begin < o->regions[i].end && o->regions[i].end <= len);
        CHECK(i == 0 || o->regions[i - 1].end < o->regions[i].begin);
    }
}

static void run(input *in) {
    static outcome expected, found;
    static const size_t pieces[8] = {0, 1, 2, 3, 7, 64, 4096, 1 << 20};
    static const uint64_t buffers[4] = {0, 1, 200, 1500};
    uint8_t choice = input_byte(in), how = input_byte(in), batch = input_byte(in);
    uint8_t failing = input_byte(in), offset = input_byte(in);
    tfw_reader_options options = options_for(choice & 3);
    options.flags = choice >> 2 & TFW_NO_DATA_CRC;
    options.max_record_size = script_limits[choice >> 3 & 3];
    options.buffer_size = buffers[choice >> 5 & 3];
    feeding feeding = {.piece = pieces[how & 7], .max_records = batch % 8, .retry = true,
                       .seed = how * UINT64_C(0x9e3779b97f4a7c15) + 1};
    file f = {0};
    script_run(&f, in);
    options.offset = offset % (f.len + 1);
    if ((how & 8) != 0) {
        options.fd = file_with(&f);
        tfwi_test_pread = (how & 16) != 0 ? short_pread : pread;
        pread_seed = feeding.seed;
    }
    tfw_reader_options plain = options;
    plain.max_record_size = script_model_limit(options.max_record_size);
    expected = model(&f, &plain);
    tfwi_test_fail_allocation = (long)failing - 1;
    found = read_all(&f, &options, &feeding);
    tfwi_test_fail_allocation = -1;
    CHECK(feeding.failures <= 1);
    CHECK_OUTCOME(&expected, &found);
    check_skipped(&found, f.len);
    free(f.data);
}

FUZZ_TARGET(run)
