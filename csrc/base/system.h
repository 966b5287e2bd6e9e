/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between systems: files that are read at an offset, and the texts of their errors. */
#ifndef TFWIRE_SYSTEM_H
#define TFWIRE_SYSTEM_H

#include "base/common.h"

/* Opens a file for reading, which child processes do not inherit; -1: errno says why. */
int tfwi_system_open(const char *path);

void tfwi_system_close(int fd);

/* Reads at most len bytes at an offset: how many, 0 at the end of the file, or -1: errno says why.
 * The file's position stays, unless other threads use it on Windows. */
ptrdiff_t tfwi_system_read(int fd, void *out, size_t len, uint64_t offset);

/* The size of a regular file; false: the descriptor is of something else. */
bool tfwi_system_size(int fd, uint64_t *out_size);

/* Locks a file against other openings of it, without waiting: flock's lock, or on Windows one byte
 * past the end of every file. EAGAIN: another has it. Both return false if errno says why. */
bool tfwi_system_lock(int fd, bool shared);
bool tfwi_system_unlock(int fd);

/* Writes the text of an errno value; an empty one where the system has none. */
void tfwi_system_error_text(int code, char *out, size_t size);

#endif /* TFWIRE_SYSTEM_H */
