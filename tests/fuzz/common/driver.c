/* SPDX-License-Identifier: Apache-2.0 */
/* main for compilers without libFuzzer: runs a target on files and folders, then for a while on
 * what a small seeded mutator makes of them.
 *
 *     fuzz_X [-seconds=N] [-seed=N] PATH...
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { LONGEST = 1 << 16 };

typedef struct sample {
    uint8_t *data;
    size_t len;
} sample;

static sample *samples;
static size_t sample_count;
static uint64_t state = 1;

static void *checked(void *memory) {
    if (memory == NULL) {
        perror("fuzz driver");
        exit(2);
    }
    return memory;
}

/* Runs a copy of just the input's size: what is read beside it is seen. */
static void run_once(const uint8_t *data, size_t len) {
    uint8_t *copy = checked(malloc(len != 0 ? len : 1));
    memcpy(copy, data, len);
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static void run_file(const char *path) {
    FILE *stream = checked(fopen(path, "rb"));
    sample s = {.data = checked(malloc(LONGEST))};
    s.len = fread(s.data, 1, LONGEST, stream);
    fclose(stream);
    samples = checked(realloc(samples, (sample_count + 1) * sizeof *samples));
    samples[sample_count++] = s;
    run_once(s.data, s.len);
}

static void run_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        checked(NULL);
    }
    if (!S_ISDIR(info.st_mode)) {
        run_file(path);
        return;
    }
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') {
            char *inner = checked(malloc(strlen(path) + strlen(names[i]->d_name) + 2));
            sprintf(inner, "%s/%s", path, names[i]->d_name);
            run_path(inner);
            free(inner);
        }
        free(names[i]);
    }
    if (count >= 0) {
        free(names);
    }
}

static size_t below(size_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)(state * UINT64_C(2685821657736338717) >> 16) % limit;
}

/* Takes bytes out, puts some in from another sample or over these, or changes one. */
static size_t mutate(uint8_t *data, size_t len) {
    static const uint8_t edges[] = {0, 1, 0x0a, 0x12, 0x1a, 0x7f, 0x80, 0xff};
    const sample *other = &samples[below(sample_count)];
    size_t at = below(len + 1), piece = below(16) + 1;
    switch (below(6)) {
    case 0:
        piece = piece < len - at ? piece : len - at;
        memmove(data + at, data + at + piece, len - at - piece);
        return len - piece;
    case 1:
        if (other->len < piece || len + piece > LONGEST) {
            return len;
        }
        memmove(data + at + piece, data + at, len - at);
        memcpy(data + at, other->data + below(other->len - piece + 1), piece);
        return len + piece;
    case 2:
        if (other->len >= piece && len - at >= piece) {
            memcpy(data + at, other->data + below(other->len - piece + 1), piece);
        }
        return len;
    case 3:
        if (at < len) {
            data[at] ^= (uint8_t)(1u << below(8));
        }
        return len;
    case 4:
        if (at < len) {
            data[at] = edges[below(sizeof edges)];
        }
        return len;
    default:
        if (at < len) {
            data[at] = (uint8_t)(data[at] + below(5) - 2);
        }
        return len;
    }
}

static size_t run_mutations(double seconds) {
    uint8_t *data = checked(malloc(LONGEST));
    time_t begin = time(NULL);
    size_t runs = 0;
    while (difftime(time(NULL), begin) < seconds && sample_count != 0) {
        for (int i = 0; i < 1000; i++, runs++) {
            const sample *s = &samples[below(sample_count)];
            size_t len = s->len;
            memcpy(data, s->data, len);
            for (size_t k = below(5) + 1; k > 0; k--) {
                len = mutate(data, len);
            }
            run_once(data, len);
        }
    }
    free(data);
    return runs;
}

int main(int argc, char **argv) {
    double seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-seconds=", 9) == 0) {
            seconds = atof(argv[i] + 9);
        } else if (strncmp(argv[i], "-seed=", 6) == 0) {
            state = strtoull(argv[i] + 6, NULL, 10) * 2 + 1;
        } else {
            run_path(argv[i]);
        }
    }
    size_t runs = run_mutations(seconds);
    printf("%s: %zu samples and %zu mutations passed\n", argv[0], sample_count, runs);
    while (sample_count > 0) {
        free(samples[--sample_count].data);
    }
    free(samples);
    return 0;
}
