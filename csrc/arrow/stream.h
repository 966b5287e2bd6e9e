/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a stream of arrays: its errors. */
#ifndef TFWIRE_STREAM_H
#define TFWIRE_STREAM_H

#include "arrow/export.h"

/* What errors of a sampled table end with; ADVICE in Python. */
#define TFWI_ADVICE                                                                            \
    ". The columns were inferred from some of the records; features=infer_schema(paths, "      \
    "num_records=None) is what fits all"

enum { TFWI_MESSAGE_SIZE = 6144 }; /* a path, a key and some words */

/* Writes the text of an error, and returns its errno value. name: of the file. layout: of the
 * columns; by_field: error->feature is one of its fields, not of a schema. */
int tfwi_stream_message(char out[TFWI_MESSAGE_SIZE], const tfw_error *error, const char *name,
                        const tfw_arrow_layout *layout, bool by_field);

/* Writes a text, as much of it as fits. */
void tfwi_stream_message_copy(char out[TFWI_MESSAGE_SIZE], const char *text);

#endif /* TFWIRE_STREAM_H */
