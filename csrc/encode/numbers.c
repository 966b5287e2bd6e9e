/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a writer of numbers, and the one for any CPU. */
#include "base/kernels.h"
#include "encode/numbers.h"

#define TARGET
#define put_varint tfwi_put_varint

TFWI_INLINE void put_template(uint8_t *p, const tfwi_scalar *s, size_t len) {
    tfwi_put_template(p, s->template, s->to_add, s->template_size, len);
}

#include "encode/numbers_template.h"

static const tfwi_writer portable = {"portable", 0, put_scalars, put_int64s};

static const tfwi_writer *const writers[] = {
#ifdef TFWI_X86
    &tfwi_writer_avx2,
#endif
#ifdef TFWI_ARM64
    &tfwi_writer_neon,
#endif
    &portable,
};

TFWI_DEFINE_CHOICE(tfwi_writer, writers)
