/* SPDX-License-Identifier: Apache-2.0 */
/* Correction of a single flipped bit in a record.
 *
 * A flipped bit of the payload adds a power of x to its CRC, another power for each bit. So the
 * difference between stored and computed CRC, the syndrome, is a power of x, and its logarithm is
 * the place of the bit; powers repeat only after 2^31 - 1, a codeword of 256 MiB. The generator has
 * the factor x + 1, so the syndrome shows the parity of the number of flipped bits: two flipped
 * bits of the payload never look like one.
 *
 * But the stored CRC is masked, and the mask is a sum with carries: a bit that flips in the file
 * flips several bits of the CRC in a row. Together with a flipped bit of the payload, or instead of
 * two, they may look like one flipped bit elsewhere. Every correction is therefore compared with
 * all damage of two bits, and is ambiguous if that explains the record as well.
 *
 * In a header all of this is tried: it has 96 bits, and the right length leads to a payload that
 * verifies.
 */
#include "records/correct.h"

enum {
    HEADER_BITS = 8 * TFW_HEADER_SIZE,
    FOOTER_BITS = 8 * TFW_FOOTER_SIZE,
    SMALLEST_TABLE = 1 << 8,
    LARGEST_TABLE = 1 << 17,
    LARGEST_PAIRS = LARGEST_TABLE /* among more bits, some two explain any even syndrome */
};

#define NO_BIT UINT64_MAX

/* ---- Discrete logarithms: baby steps in a table, giant steps over its size ----------------- */

typedef struct logarithms {
    uint64_t *slots; /* power of x << 32 | its exponent; 0: free. Open addressing, half full */
    size_t mask;
    uint32_t steps; /* exponents 0 to steps - 1 are in the table */
} logarithms;

/* Polynomials are reflected, as in the CRC: the highest bit is x to the 0. */
#define ONE UINT32_C(0x80000000)

static uint32_t times_x(uint32_t v) { return (v >> 1) ^ (UINT32_C(0x82f63b78) & (0 - (v & 1))); }

/* v divided by x to the 8 * bytes, that is, multiplied by its inverse. */
static uint32_t divide(uint32_t v, uint32_t bytes) {
    return tfw_crc32c_combine(v, 0, TFWI_ORDER_OF_X - bytes);
}

static size_t slot_of(const logarithms *table, uint32_t power) {
    return (size_t)((power * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & table->mask;
}

static int logarithms_create(logarithms *table, uint32_t steps) {
    table->steps = steps;
    table->mask = 2 * (size_t)steps - 1;
    table->slots = tfwi_calloc(2 * (size_t)steps, sizeof *table->slots);
    if (table->slots == NULL) {
        return TFW_E_MEMORY;
    }
    uint32_t power = ONE;
    for (uint32_t exponent = 0; exponent < steps; exponent++, power = times_x(power)) {
        size_t slot = slot_of(table, power);
        while (table->slots[slot] != 0) {
            slot = (slot + 1) & table->mask;
        }
        table->slots[slot] = (uint64_t)power << 32 | exponent;
    }
    return TFW_OK;
}

/* The exponent of a power in the table, else NO_BIT. */
static uint64_t logarithm_of(const logarithms *table, uint32_t power) {
    for (size_t slot = slot_of(table, power);; slot = (slot + 1) & table->mask) {
        uint64_t entry = table->slots[slot];
        if (entry == 0) {
            return NO_BIT;
        }
        if (entry >> 32 == power) {
            return (uint32_t)entry;
        }
    }
}

/* The exponent below count of a power of x, else NO_BIT. */
static uint64_t logarithm(const logarithms *table, uint32_t power, uint64_t count) {
    for (uint64_t base = 0; base < count; base += table->steps) {
        uint64_t exponent = logarithm_of(table, power);
        if (exponent != NO_BIT) {
            return base + exponent < count ? base + exponent : NO_BIT;
        }
        power = divide(power, table->steps / 8);
    }
    return NO_BIT;
}

/* Whether two different powers of x, with exponents below the table's steps, have this sum. */
static bool is_sum_of_two(const logarithms *table, uint32_t sum, uint64_t count) {
    uint32_t power = ONE;
    for (uint64_t exponent = 0; exponent < count; exponent++, power = times_x(power)) {
        if (logarithm_of(table, sum ^ power) < count) {
            return true;
        }
    }
    return false;
}

/* ---- The payload and its checksum ---------------------------------------------------------- */

typedef struct payload_state {
    uint64_t bits;     /* of the payload */
    uint32_t computed; /* CRC of the payload as it is */
    uint32_t stored;   /* footer, masked */
} payload_state;

/* The power of x that a flipped bit of the payload would have added; exponent 0 is the last bit. */
static uint32_t syndrome(const payload_state *state, uint32_t stored) {
    return divide(tfwi_crc32c_unmask(stored) ^ state->computed, FOOTER_BITS / 8);
}

static bool is_odd(uint32_t v) {
    v ^= v >> 16;
    v ^= v >> 8;
    v ^= v >> 4;
    return (0x6996u >> (v & 15)) & 1;
}

static bool is_power_of_two(uint32_t v) { return v != 0 && (v & (v - 1)) == 0; }

static unsigned lowest_bit(uint32_t v) {
    unsigned bit = 0;
    while (((v >> bit) & 1) == 0) {
        bit++;
    }
    return bit;
}

/* So many steps that a few dozen logarithms below bits cost about as much as the table. */
static uint32_t table_size(uint64_t bits) {
    uint32_t steps = SMALLEST_TABLE;
    while (steps < LARGEST_TABLE && (uint64_t)steps * steps < 64 * bits) {
        steps *= 2;
    }
    return steps;
}

/* Whether a flipped bit of the payload and one of the footer explain what was found. */
static bool is_bit_of_each(const logarithms *table, const payload_state *state) {
    for (unsigned bit = 0; bit < FOOTER_BITS; bit++) {
        uint32_t rest = syndrome(state, state->stored ^ UINT32_C(1) << bit);
        if (rest != 0 && logarithm(table, rest, state->bits) != NO_BIT) {
            return true;
        }
    }
    return false;
}

/* Whether two flipped bits of the payload explain the damage, too. Of long payloads only the parity
 * is examined: an even one says that they might. */
static int is_two_of_payload(const payload_state *state, bool *out_is) {
    uint32_t sum = syndrome(state, state->stored);
    *out_is = !is_odd(sum);
    if (!*out_is || state->bits > LARGEST_PAIRS) {
        return TFW_OK;
    }
    uint32_t steps = SMALLEST_TABLE;
    while (steps < state->bits) {
        steps *= 2;
    }
    logarithms table;
    int status = logarithms_create(&table, steps);
    if (status == TFW_OK) {
        *out_is = is_sum_of_two(&table, sum, state->bits);
        tfw_free(table.slots);
    }
    return status;
}

static int find_in_payload(const logarithms *table, const payload_state *state,
                           tfw_flip *out_flip) {
    uint32_t footer = state->stored ^ tfwi_crc32c_mask(state->computed);
    uint64_t exponent = logarithm(table, syndrome(state, state->stored), state->bits);
    bool two = false;
    if (is_power_of_two(footer)) {
        unsigned bit = lowest_bit(footer);
        out_flip->byte = TFW_HEADER_SIZE + state->bits / 8 + bit / 8;
        out_flip->bit = (int32_t)(bit % 8);
        int status = is_two_of_payload(state, &two);
        if (status != TFW_OK) {
            return status;
        }
        two = two || exponent != NO_BIT;
    } else if (exponent != NO_BIT) {
        /* The last bit of a byte in the polynomial's order is its highest one. */
        out_flip->byte = TFW_HEADER_SIZE + state->bits / 8 - 1 - exponent / 8;
        out_flip->bit = (int32_t)(7 - exponent % 8);
        two = is_power_of_two(footer & (footer - 1));
    } else {
        return TFW_E_DATA_CRC;
    }
    out_flip->ambiguous = two || is_bit_of_each(table, state);
    return TFW_OK;
}

static int correct_payload(const uint8_t *record, uint64_t length, tfw_flip *out_flip) {
    const uint8_t *payload = record + TFW_HEADER_SIZE;
    payload_state state = {
        .bits = 8 * length,
        .computed = tfw_crc32c(0, payload, (size_t)length),
        .stored = tfwi_load32(payload + length),
    };
    if (state.stored == tfwi_crc32c_mask(state.computed)) {
        return TFW_END;
    }
    if (length > (TFWI_ORDER_OF_X - FOOTER_BITS) / 8) {
        return TFW_E_DATA_CRC; /* two places have the same power */
    }
    logarithms table;
    int status = logarithms_create(&table, table_size(state.bits));
    if (status == TFW_OK) {
        status = find_in_payload(&table, &state, out_flip);
        tfw_free(table.slots);
    }
    return status;
}

/* ---- The header ---------------------------------------------------------------------------- */

static void flip(uint8_t *data, unsigned bit) { data[bit / 8] ^= (uint8_t)(1u << (bit % 8)); }

/* Whether the record verifies with this header. TFW_NEED_INPUT: it takes *needed bytes to know. */
static int correction_fits(const tfwi_damaged *damaged, const uint8_t *header, bool *out_fits,
                           uint64_t *needed) {
    *out_fits = false;
    if (!tfwi_header_verifies(tfwi_crc32c_current(), header)) {
        return TFW_OK;
    }
    uint64_t length = tfwi_load64(header);
    if (length > tfwi_length_limit(damaged->max_record_size) ||
        damaged->available < TFWI_FRAME_SIZE || length > damaged->available - TFWI_FRAME_SIZE) {
        return TFW_OK;
    }
    if (length + TFWI_FRAME_SIZE > damaged->end - damaged->begin) {
        *needed = length + TFWI_FRAME_SIZE;
        return TFW_NEED_INPUT;
    }
    size_t payload = damaged->begin + TFW_HEADER_SIZE;
    return tfwi_resync_verify(damaged->resync, damaged->data, payload, payload + (size_t)length,
                              out_fits);
}

/* Tries every two bits. */
static int is_two_of_header(const tfwi_damaged *damaged, uint8_t *header, int32_t *out_is,
                            uint64_t *needed) {
    for (unsigned i = 1; i < HEADER_BITS; i++) {
        for (unsigned j = 0; j < i; j++) {
            bool fit = false;
            flip(header, i);
            flip(header, j);
            int status = correction_fits(damaged, header, &fit, needed);
            flip(header, j);
            flip(header, i);
            if (status != TFW_OK || fit) {
                *out_is = 1;
                return status;
            }
        }
    }
    return TFW_OK;
}

static int correct_header(const tfwi_damaged *damaged, tfw_flip *out_flip, uint64_t *needed) {
    uint8_t header[TFW_HEADER_SIZE];
    unsigned found = 0;
    memcpy(header, damaged->data + damaged->begin, sizeof header);
    for (unsigned bit = 0; bit < HEADER_BITS; bit++) {
        bool fit = false;
        flip(header, bit);
        int status = correction_fits(damaged, header, &fit, needed);
        flip(header, bit);
        if (status != TFW_OK) {
            return status;
        }
        if (fit && found++ == 0) {
            out_flip->byte = bit / 8;
            out_flip->bit = (int32_t)(bit % 8);
        }
    }
    if (found == 0) {
        return TFW_E_LENGTH_CRC;
    }
    out_flip->ambiguous = found > 1;
    return is_two_of_header(damaged, header, &out_flip->ambiguous, needed);
}

/* ---- The record ---------------------------------------------------------------------------- */

int tfwi_correct(const tfwi_damaged *damaged, tfw_flip *out_flip, uint64_t *needed) {
    const uint8_t *record = damaged->data + damaged->begin;
    size_t there = damaged->end - damaged->begin;
    memset(out_flip, 0, sizeof *out_flip);
    if (there < TFW_HEADER_SIZE) {
        *needed = TFW_HEADER_SIZE;
        return TFW_NEED_INPUT;
    }
    if (!tfwi_header_verifies(tfwi_crc32c_current(), record)) {
        return correct_header(damaged, out_flip, needed);
    }
    uint64_t length = tfwi_load64(record);
    if (length > tfwi_length_limit(damaged->max_record_size)) {
        return TFW_E_TOO_LARGE;
    }
    if (length + TFWI_FRAME_SIZE > there) {
        *needed = length + TFWI_FRAME_SIZE;
        return TFW_NEED_INPUT;
    }
    return correct_payload(record, length, out_flip);
}

int tfw_correct(const uint8_t *data, size_t len, uint64_t available, uint64_t max_record_size,
                tfw_flip *out_flip, tfw_error *error) {
    static const uint8_t nothing[1];
    tfwi_resync resync = {0};
    tfwi_damaged damaged = {
        .data = data != NULL ? data : nothing,
        .end = len,
        .available = available,
        .max_record_size = max_record_size,
        .resync = &resync,
    };
    uint64_t needed = 0;
    int status = tfwi_correct(&damaged, out_flip, &needed);
    tfwi_resync_free(&resync);
    switch (status) {
    case TFW_OK:
    case TFW_END: return status;
    case TFW_E_MEMORY: return tfwi_fail(error, status, "out of memory");
    case TFW_E_TOO_LARGE: return tfwi_fail(error, status, "the record is above the limit");
    case TFW_NEED_INPUT:
        tfwi_fail(error, status, "");
        TFWI_SET(error, expected, tfwi_saturated(needed));
        TFWI_SET(error, found, tfwi_saturated(len));
        return status;
    default: return tfwi_fail(error, status, "no single bit explains the damage");
    }
}
