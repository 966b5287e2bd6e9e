/* SPDX-License-Identifier: Apache-2.0 */
/* Damage of records, in words. */
#include "records/describe.h"

#include <inttypes.h>
#include <stdio.h>

/* Files that are taken for record files, by the bytes at their beginning. */
static const struct {
    const char *name;
    const char *bytes;
} formats[] = {
    {"an index that tfwire saved", "TFWINDEX"},
    {"Parquet", "PAR1"},
    {"Arrow", "ARROW1"},
    {"an array of NumPy", "\x93NUMPY"},
    {"zip", "PK\x03\x04"},
    {"zstd", "\x28\xb5\x2f\xfd"},
    {"bzip2", "BZh9"},
    {"xz", "\xfd\x37zXZ"},
    {"HDF5", "\x89HDF"},
    {"PNG", "\x89PNG"},
    {"JPEG", "\xff\xd8\xff\xe0"},
    {"a pointer of Git LFS", "version http"},
    {"XML", "<?xml"},
    {"HTML", "<!doctype"},
    {"HTML", "<html"},
};

/* Whether bytes begin with these; small letters stand for both cases. */
static bool begins_with(const uint8_t *data, size_t len, const char *bytes) {
    for (size_t i = 0; bytes[i] != '\0'; i++) {
        const uint8_t expected = (uint8_t)bytes[i];
        const bool letter = expected >= 'a' && expected <= 'z';
        if (i == len || (letter ? data[i] | 0x20 : data[i]) != expected) {
            return false;
        }
    }
    return true;
}

/* What other format the first bytes of a file look like, or NULL. */
static const char *other_format(const uint8_t *data, size_t len) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (begins_with(data, len, formats[i].bytes)) {
            return formats[i].name;
        }
    }
    if (len >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        return "gzip";
    }
    if (len >= 2 && (data[0] & 0x0f) == 8 && ((data[0] << 8) | data[1]) % 31 == 0) {
        return "zlib";
    }
    for (size_t i = 0; i < len; i++) {
        bool printable = data[i] >= 0x20 && data[i] < 0x7f;
        if (!printable && data[i] != '\t' && data[i] != '\n' && data[i] != '\r') {
            return NULL;
        }
    }
    return "text";
}

/* Describes bytes after the last record, fewer than a header takes. */
static void describe_stray(tfw_error *error) {
    if (error->record > 0) {
        snprintf(error->text, TFW_ERROR_TEXT_SIZE,
                 "%" PRId64 " stray bytes after record %" PRId64, error->found, error->record - 1);
    } else {
        snprintf(error->text, TFW_ERROR_TEXT_SIZE,
                 "%" PRId64 " stray bytes and no record, which takes 16 or more", error->found);
    }
}

void tfwi_describe(const uint8_t *record, tfw_error *error) {
    char *text = error->text;
    unsigned expected = (unsigned)error->expected;
    unsigned found = (unsigned)error->found;
    const bool stray = error->status == TFW_E_TRUNCATED && error->expected == TFW_HEADER_SIZE &&
                       error->found > 0;
    if (error->offset == 0 && (stray || error->status == TFW_E_LENGTH_CRC)) {
        const char *format = other_format(record, stray ? (size_t)error->found : TFW_HEADER_SIZE);
        if (format != NULL) {
            snprintf(text, TFW_ERROR_TEXT_SIZE, "not a TFRecord file? it begins like %s", format);
            return;
        }
    }
    switch (error->status) {
    case TFW_E_LENGTH_CRC:
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "length checksum is 0x%08x but the header says 0x%08x", found, expected);
        break;
    case TFW_E_DATA_CRC:
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "payload checksum is 0x%08x but the footer says 0x%08x", found, expected);
        break;
    case TFW_E_TOO_LARGE: /* the length itself: it may not fit error->found */
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "record of %" PRIu64 " bytes, above the limit of %" PRId64, tfwi_load64(record),
                 error->expected);
        break;
    case TFW_E_TRUNCATED:
        if (stray) {
            describe_stray(error);
            break;
        }
        snprintf(text, TFW_ERROR_TEXT_SIZE,
                 "record takes %" PRId64 " bytes but only %" PRId64 " are left", error->expected,
                 error->found);
        break;
    default: break;
    }
}

int tfwi_report_damage(tfw_error *error, tfw_error found, const uint8_t *record, uint64_t number,
                       uint64_t offset) {
    found.record = tfwi_saturated(number);
    found.offset = tfwi_saturated(offset);
    tfwi_describe(record, &found);
    if (error != NULL) {
        *error = found;
    }
    return found.status;
}
