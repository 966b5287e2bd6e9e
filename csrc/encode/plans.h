/* SPDX-License-Identifier: Apache-2.0 */
/* Columns prepared for encoding: checked inputs with the prefixes of their features. */
#ifndef TFWIRE_PLANS_H
#define TFWIRE_PLANS_H

#include "encode/numbers.h"

/* A column. */
typedef struct tfwi_plan {
    tfw_input in;
    tfwi_prefix entry;
    tfwi_prefix step; /* feature lists only */
    /* How many features, from this one on, are one number in every record. */
    size_t run;
    size_t run_bound; /* room that they take at most */
} tfwi_plan;

/* The features of an Example, the context or the feature lists of a SequenceExample. */
typedef struct tfwi_section {
    uint8_t tag;
    bool is_lists;
    const tfwi_writer *writer;
    tfwi_plan *plans;
    tfwi_scalar *scalars; /* of the plans that are part of a run */
    const tfwi_scalar **runs; /* the same */
    size_t count;
    size_t guess; /* bytes of the last record's length of this section */
    size_t at_fault;
} tfwi_section;

/* Checks the inputs of two sections, the second perhaps empty, for records [0, records), as far as
 * that needs no look at each record. TFW_E_ARGUMENT: error->feature is not as tfw_input says. */
int tfwi_check_inputs(const tfwi_section sections[2], const tfw_input *const inputs[2],
                      uint64_t records, tfw_error *error);

/* Makes the plans of two sections, to encode that many records, in one block of memory for
 * tfw_free; NULL: out of memory. */
void *tfwi_make_plans(tfwi_section sections[2], const tfw_input *const inputs[2], uint64_t records);

#endif /* TFWIRE_PLANS_H */
