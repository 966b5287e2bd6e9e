/* SPDX-License-Identifier: Apache-2.0 */
/* What the sequential reader does at damage. */
#ifndef TFWIRE_DAMAGE_H
#define TFWIRE_DAMAGE_H

#include "records/reader_state.h"

/* Handles the damage of the record at begin as the policy says. */
int tfwi_reader_meet_damage(tfw_reader *reader);

/* Whether the damage at begin may be a flipped bit. If it is one, flips it back. */
bool tfwi_reader_may_be_corrected(const tfw_reader *reader);
int tfwi_reader_correct_damage(tfw_reader *reader);

/* Looks for the next record that verifies and extends the open region up to it. */
int tfwi_reader_search(tfw_reader *reader);

/* Ends the input. */
int tfwi_reader_finish(tfw_reader *reader);

#endif /* TFWIRE_DAMAGE_H */
