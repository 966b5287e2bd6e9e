/* SPDX-License-Identifier: Apache-2.0 */
/* The sequential reader's window on its input. */
#ifndef TFWIRE_WINDOW_H
#define TFWIRE_WINDOW_H

#include "records/reader_state.h"

/* Makes room for at least half a buffer of input; TFW_E_MEMORY. */
int tfwi_reader_make_room(tfw_reader *reader);

/* Reads the next part of the file into the room. */
int tfwi_reader_read_file(tfw_reader *reader, tfw_error *error);

/* The file offset at which the input ends, or UINT64_MAX where that is not known. */
uint64_t tfwi_reader_input_end(tfw_reader *reader);

#endif /* TFWIRE_WINDOW_H */
