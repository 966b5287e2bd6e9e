/* The choice of a writer of numbers, and the one for any CPU. */
#include "base/cpu.h"
#include "encode/numbers.h"

#define TARGET
#define put_varint tfwi_put_varint

TFWI_INLINE void put_template(uint8_t *p, const tfwi_scalar *s, size_t len) {
    tfwi_put_template(p, s->template, s->to_add, s->template_size, len);
}

#include "encode/numbers_loop.h"

static const tfwi_writer portable = {"portable", 0, put_scalars, put_int64s};

static const tfwi_writer *const writers[] = {
#ifdef TFWI_X86
    &tfwi_writer_avx2,
#endif
    &portable,
};

enum { NUM_WRITERS = sizeof writers / sizeof writers[0] };

const tfwi_writer *tfwi_writer_at(size_t i) { return i < NUM_WRITERS ? writers[i] : NULL; }

bool tfwi_writer_supported(const tfwi_writer *writer) {
    return (writer->features & ~tfwi_cpu_features()) == 0;
}

const tfwi_writer *tfwi_writer_best(void) {
    const tfwi_writer *const *best = writers;
    while (!tfwi_writer_supported(*best)) {
        best++; /* the last one, portable, needs nothing */
    }
    return *best;
}
