/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing among implementations of one function for different CPUs ("kernels"). */
#ifndef TFWIRE_KERNELS_H
#define TFWIRE_KERNELS_H

#include "base/cpu.h"

/* Defines, over a table of pointers to kernels of a type, best first:
 *
 *     type_at(i)     kernel i, or NULL past the last
 *     type_best()    the first one that this CPU can and should run
 *
 * A kernel has a member `features`: the TFWI_CPU_ bits that it needs. The last one needs none. */
#define TFWI_DEFINE_CHOICE(type, table)                                     \
    const type *type##_at(size_t i) {                                       \
        return i < sizeof(table) / sizeof(table)[0] ? (table)[i] : NULL;    \
    }                                                                       \
    const type *type##_best(void) {                                         \
        size_t i = 0;                                                       \
        while (!tfwi_cpu_prefers((table)[i]->features)) {                   \
            i++;                                                            \
        }                                                                   \
        return (table)[i];                                                  \
    }

#endif /* TFWIRE_KERNELS_H */
