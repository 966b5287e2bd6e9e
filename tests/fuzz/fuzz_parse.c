/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_parse: schemas of every kind and layout, batches, flags, failing memory. */
#include "common/parsing.h"

static void run(input *in) { run_parsing(in, false); }

FUZZ_TARGET(run)
