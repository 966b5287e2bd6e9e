/* SPDX-License-Identifier: Apache-2.0 */
/* Record files in memory and on the disk. */
#ifndef TFWIRE_TESTS_FILESET_H
#define TFWIRE_TESTS_FILESET_H

#include "tables.h"

#include <fcntl.h>

#ifdef _WIN32
#define O_FLAGS (O_RDWR | O_CREAT | O_TRUNC | O_BINARY)
#else
#define O_FLAGS (O_RDWR | O_CREAT | O_TRUNC)
#endif

enum { MOST_FILES = 64 };

typedef struct fileset {
    file *files; /* large: not for the stack */
    char *paths[MOST_FILES];
    size_t count;
} fileset;

static inline void fileset_write(const fileset *set, size_t i) {
    const file *f = &set->files[i];
    int fd = open(set->paths[i], O_FLAGS, 0600);
    CHECK(fd >= 0 && (f->len == 0 || write(fd, f->data, (unsigned)f->len) == (int)f->len));
    close(fd);
}

static inline void fileset_add(fileset *set, file f) {
    const char *folder = getenv("TMPDIR") != NULL ? getenv("TMPDIR")
                         : getenv("TEMP") != NULL ? getenv("TEMP")
                                                  : "/tmp";
    char *path = malloc(strlen(folder) + 64);
    sprintf(path, "%s/tfwire-test-%lu-%zu", folder, (unsigned long)getpid(), set->count);
    set->files = realloc(set->files, (set->count + 1) * sizeof f);
    set->paths[set->count] = path;
    set->files[set->count++] = f;
    fileset_write(set, set->count - 1);
}

static inline void fileset_free(fileset *set) {
    for (size_t i = 0; i < set->count; i++) {
        unlink(set->paths[i]);
        free(set->paths[i]);
        free(set->files[i].data);
    }
    free(set->files);
    *set = (fileset){0};
}

/* Every so many records, the first among them, do not fit the schema. */
static inline file file_with_misfits(uint64_t seed, size_t count, size_t each) {
    file f = {0};
    uint64_t state = 2 * seed + 1;
    for (size_t i = 0; i < count; i++) {
        blob message = i % each == 0 ? EXAMPLE(entry("n", FLOATS(1))) : example_of(&state, i);
        file_append_record(&f, message.data, message.len);
        blobs_free();
    }
    return f;
}

/* Two files of so many examples each. */
static inline fileset two_files(size_t count) {
    fileset set = {0};
    fileset_add(&set, file_of_examples(1, count, false));
    fileset_add(&set, file_of_examples(2, count, false));
    return set;
}

#endif /* TFWIRE_TESTS_FILESET_H */
