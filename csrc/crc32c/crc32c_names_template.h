/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the names of a kernel. Its header includes this after the system's headers, and then
 * defines
 *
 *     KERNEL       its name, which all of its functions get at their end: a file holds several
 *     FEATURES     the TFWI_CPU_ bits that it needs
 *
 * and what else the templates that it includes ask for.
 */
#include "base/cpu.h"
#include "crc32c/crc32c.h"

#undef KERNEL
#undef FEATURES
#undef TARGET
#undef VEC_SIZE
#undef BLOCK_ROWS
#undef STREAM_WORDS
#undef BLOCK_FOLD
#undef STREAM_FACTORS
#undef CRC32CD

#define KERNEL_JOIN(name, kernel) name##_##kernel
#define KERNEL_EXPAND(name, kernel) KERNEL_JOIN(name, kernel)
#define OF_KERNEL(name) KERNEL_EXPAND(name, KERNEL)

#define vec OF_KERNEL(vec)
#define vec_load OF_KERNEL(vec_load)
#define vec_state OF_KERNEL(vec_state)
#define vec_product OF_KERNEL(vec_product)
#define vec_low OF_KERNEL(vec_low)
#define vec_add OF_KERNEL(vec_add)
#define vec_factors OF_KERNEL(vec_factors)
#define vec_fold OF_KERNEL(vec_fold)
#define vec_lane_sum OF_KERNEL(vec_lane_sum)
#define vec_sum OF_KERNEL(vec_sum)
#define lane_of OF_KERNEL(lane_of)
#define to_end OF_KERNEL(to_end)
#define crc_word OF_KERNEL(crc_word)
#define crc_bytes OF_KERNEL(crc_bytes)
#define row OF_KERNEL(row)
#define ROW_SIZE OF_KERNEL(ROW_SIZE)
#define ROWS_SIZE OF_KERNEL(ROWS_SIZE)
#define STREAM_SIZE OF_KERNEL(STREAM_SIZE)
#define BLOCK_SIZE OF_KERNEL(BLOCK_SIZE)
#define next_row OF_KERNEL(next_row)
#define next_block OF_KERNEL(next_block)
#define fold OF_KERNEL(fold)
#define multiply_mod OF_KERNEL(multiply_mod)
#define SERIAL_LIMIT OF_KERNEL(SERIAL_LIMIT)
#define FOLD_LIMIT OF_KERNEL(FOLD_LIMIT)
#define load_part OF_KERNEL(load_part)
#define crc_part OF_KERNEL(crc_part)
#define serial OF_KERNEL(serial)
#define three_streams OF_KERNEL(three_streams)
#define streams_and_blocks OF_KERNEL(streams_and_blocks)
#define kernel_crc OF_KERNEL(kernel_crc)
#define kernel_crc8 OF_KERNEL(kernel_crc8)
#define kernel_of_name OF_KERNEL(tfwi_crc32c)
