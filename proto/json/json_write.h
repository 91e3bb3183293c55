/*
 * json_write.h - the writing half of the JSON codec; the contracts are those of codec.h.
 */
#ifndef GM_PROTO_JSON_JSON_WRITE_H
#define GM_PROTO_JSON_JSON_WRITE_H

#include "proto/codec.h"

enum gm_status gm_json_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                    struct gm_error *err);
enum gm_status gm_json_encode(const struct gm_matrix *matrix,
                              const struct gm_encode_options *options, char *out, uint64_t capacity,
                              uint64_t *ret_len, struct gm_error *err);

#endif
