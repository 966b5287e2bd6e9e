/* SPDX-License-Identifier: Apache-2.0 */
/* Damage of records, in words. */
#ifndef TFWIRE_DESCRIBE_H
#define TFWIRE_DESCRIBE_H

#include "base/common.h"

/* Describes the damage that was found in the record here; error says where that is. At the
 * beginning of a file: what other format the file looks like. */
void tfwi_describe(const uint8_t *record, tfw_error *error);

/* The same, and reports it as that of the record with this number, at this offset; returns its
 * status. */
int tfwi_report_damage(tfw_error *error, tfw_error found, const uint8_t *record, uint64_t number,
                       uint64_t offset);

#endif /* TFWIRE_DESCRIBE_H */
