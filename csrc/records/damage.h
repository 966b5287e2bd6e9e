/* What the sequential reader does at damage. */
#ifndef TFWIRE_DAMAGE_H
#define TFWIRE_DAMAGE_H

#include "records/reader.h"

/* Does with the damage of the record at begin what the policy says. */
int tfwi_reader_meet_damage(tfw_reader *reader);

/* Whether the damage at begin may be a flipped bit, and finds out; it is flipped back then. */
bool tfwi_reader_may_be_corrected(const tfw_reader *reader);
int tfwi_reader_correct_damage(tfw_reader *reader);

/* Looks for the next record that verifies and extends the open region up to it. */
int tfwi_reader_search(tfw_reader *reader);

/* Nothing more will come. */
int tfwi_reader_finish(tfw_reader *reader);

#endif /* TFWIRE_DAMAGE_H */
