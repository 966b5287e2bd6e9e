/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file that stay in memory once they were read. */
#ifndef TFWIRE_CACHE_H
#define TFWIRE_CACHE_H

#include "base/common.h"

/* Bytes of the file, in memory; those that are not there yet are read. NULL: they cannot be, or
 * another thread reads them now; the caller reads them from the file, and finds out. */
const uint8_t *tfwi_cache_find(tfw_cache *cache, int32_t fd, uint64_t offset, uint64_t len);

/* One share more, to be given back by tfw_cache_free; NULL is allowed. */
void tfwi_cache_share(tfw_cache *cache);

/* Lets the CPU load the bytes at an offset, if they are there. */
void tfwi_cache_prefetch(const tfw_cache *cache, uint64_t offset);

#endif /* TFWIRE_CACHE_H */
