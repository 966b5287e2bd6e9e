/* Temporary: weak stand-ins until every part has landed. */
#include "tfwire.h"
__attribute__((weak)) uint32_t tfw_crc32c(uint32_t crc, const void *data, size_t len) { (void)crc;(void)data;(void)len; return 0; }
__attribute__((weak)) uint32_t tfw_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b) { (void)crc_a;(void)crc_b;(void)len_b; return 0; }
__attribute__((weak)) uint32_t tfw_crc32c_mask(uint32_t crc) { (void)crc; return 0; }
__attribute__((weak)) uint32_t tfw_crc32c_unmask(uint32_t masked) { (void)masked; return 0; }
__attribute__((weak)) const char * tfw_crc32c_kernel(void) {  return 0; }
__attribute__((weak)) const char * tfw_crc32c_kernel_name(size_t i, bool *out_supported) { (void)i;(void)out_supported; return 0; }
__attribute__((weak)) int tfw_crc32c_select(const char *name) { (void)name; return -4; }
__attribute__((weak)) int tfw_scan(const uint8_t *data, size_t len, uint64_t max_record_size, unsigned flags,
                     tfw_span *out_spans, size_t span_capacity, size_t *out_count,
                     size_t *out_consumed, tfw_error *error) { (void)data;(void)len;(void)max_record_size;(void)flags;(void)out_spans;(void)span_capacity;(void)out_count;(void)out_consumed;(void)error; return -4; }
__attribute__((weak)) int tfw_frame(uint8_t *data, size_t len, const tfw_span *spans, size_t count,
                      tfw_error *error) { (void)data;(void)len;(void)spans;(void)count;(void)error; return -4; }
__attribute__((weak)) int tfw_pack(const uint8_t *data, size_t len, const tfw_span *spans, size_t count,
                     uint8_t *out, size_t capacity, size_t *out_len, tfw_error *error) { (void)data;(void)len;(void)spans;(void)count;(void)out;(void)capacity;(void)out_len;(void)error; return -4; }
__attribute__((weak)) int tfw_reader_create(const tfw_reader_options *options, tfw_reader **out_reader,
                              tfw_error *error) { (void)options;(void)out_reader;(void)error; return -4; }
__attribute__((weak)) void tfw_reader_free(tfw_reader *reader) { (void)reader;  }
__attribute__((weak)) int tfw_reader_next(tfw_reader *reader, size_t max_records, tfw_batch *out_batch,
                            tfw_error *error) { (void)reader;(void)max_records;(void)out_batch;(void)error; return -4; }
__attribute__((weak)) int tfw_reader_reserve(tfw_reader *reader, uint8_t **out_data, size_t *out_len,
                               tfw_error *error) { (void)reader;(void)out_data;(void)out_len;(void)error; return -4; }
__attribute__((weak)) int tfw_reader_commit(tfw_reader *reader, size_t len, tfw_error *error) { (void)reader;(void)len;(void)error; return -4; }
__attribute__((weak)) size_t tfw_reader_skipped(const tfw_reader *reader, size_t first, tfw_region *out_regions,
                                  size_t capacity) { (void)reader;(void)first;(void)out_regions;(void)capacity; return 0; }
__attribute__((weak)) int tfw_pickle_spans(const uint8_t *data, const tfw_span *spans, size_t count,
                             uint8_t *out, size_t capacity, size_t *out_len) { (void)data;(void)spans;(void)count;(void)out;(void)capacity;(void)out_len; return -4; }
__attribute__((weak)) int tfw_pickle_offsets(const uint8_t *data, const int64_t *offsets, size_t count,
                               uint8_t *out, size_t capacity, size_t *out_len) { (void)data;(void)offsets;(void)count;(void)out;(void)capacity;(void)out_len; return -4; }
__attribute__((weak)) uint64_t tfw_pickle_bound(uint64_t count, uint64_t payload_bytes) { (void)count;(void)payload_bytes; return 0; }
__attribute__((weak)) int tfw_marshal_spans(const uint8_t *stream, size_t len, tfw_span *out_spans,
                              size_t capacity, size_t *out_count) { (void)stream;(void)len;(void)out_spans;(void)capacity;(void)out_count; return -4; }
__attribute__((weak)) int tfw_schema_create(const tfw_feature *features, size_t count, tfw_schema **out_schema,
                              tfw_error *error) { (void)features;(void)count;(void)out_schema;(void)error; return -4; }
__attribute__((weak)) void tfw_schema_free(tfw_schema *schema) { (void)schema;  }
__attribute__((weak)) int tfw_columns_create(const tfw_schema *schema, unsigned flags, tfw_columns **out_columns,
                               tfw_error *error) { (void)schema;(void)flags;(void)out_columns;(void)error; return -4; }
__attribute__((weak)) void tfw_columns_free(tfw_columns *columns) { (void)columns;  }
__attribute__((weak)) void tfw_columns_clear(tfw_columns *columns) { (void)columns;  }
__attribute__((weak)) int tfw_columns_bind(tfw_columns *columns, size_t feature, void *values, uint64_t capacity,
                             tfw_error *error) { (void)columns;(void)feature;(void)values;(void)capacity;(void)error; return -4; }
__attribute__((weak)) uint64_t tfw_columns_records(const tfw_columns *columns) { (void)columns; return 0; }
__attribute__((weak)) int tfw_columns_take(tfw_columns *columns, size_t feature, tfw_column *out_column,
                             tfw_error *error) { (void)columns;(void)feature;(void)out_column;(void)error; return -4; }
__attribute__((weak)) int tfw_parse(tfw_columns *columns, const uint8_t *data, size_t data_len,
                      const tfw_span *spans, size_t count, unsigned flags, size_t *out_done,
                      tfw_error *error) { (void)columns;(void)data;(void)data_len;(void)spans;(void)count;(void)flags;(void)out_done;(void)error; return -4; }
__attribute__((weak)) int tfw_parse_sequence(tfw_columns *context, tfw_columns *lists, const uint8_t *data,
                               size_t data_len, const tfw_span *spans, size_t count,
                               unsigned flags, size_t *out_done, tfw_error *error) { (void)context;(void)lists;(void)data;(void)data_len;(void)spans;(void)count;(void)flags;(void)out_done;(void)error; return -4; }
__attribute__((weak)) int tfw_decode(const uint8_t *data, size_t data_len, const tfw_span *spans, size_t count,
                       unsigned flags, tfw_dicts *out_dicts, size_t *out_done, tfw_error *error) { (void)data;(void)data_len;(void)spans;(void)count;(void)flags;(void)out_dicts;(void)out_done;(void)error; return -4; }
__attribute__((weak)) int tfw_encode(const tfw_input *inputs, size_t input_count, uint64_t first, uint64_t count,
                       size_t headroom, size_t tailroom, uint8_t *out, size_t capacity,
                       tfw_span *out_spans, uint64_t *out_done, size_t *out_len, tfw_error *error) { (void)inputs;(void)input_count;(void)first;(void)count;(void)headroom;(void)tailroom;(void)out;(void)capacity;(void)out_spans;(void)out_done;(void)out_len;(void)error; return -4; }
__attribute__((weak)) int tfw_encode_sequence(const tfw_input *context, size_t context_count,
                                const tfw_input *lists, size_t list_count, uint64_t first,
                                uint64_t count, size_t headroom, size_t tailroom, uint8_t *out,
                                size_t capacity, tfw_span *out_spans, uint64_t *out_done,
                                size_t *out_len, tfw_error *error) { (void)context;(void)context_count;(void)lists;(void)list_count;(void)first;(void)count;(void)headroom;(void)tailroom;(void)out;(void)capacity;(void)out_spans;(void)out_done;(void)out_len;(void)error; return -4; }
