/* SPDX-License-Identifier: Apache-2.0 */
/* tfw_parse_sequence: as fuzz_parse, with a context and feature lists. */
#include "common/parsing.h"

static void run(input *in) { run_parsing(in, true); }

FUZZ_TARGET(run)
