/*
 * codec_csv_write.h - a matrix as CSV: commas, a line feed behind each row, an empty line between
 * the matrices of a stack. Nothing at all where there are no elements. As in codec.h.
 */
#ifndef GM_PROTO_CSV_CODEC_CSV_WRITE_H
#define GM_PROTO_CSV_CODEC_CSV_WRITE_H

#include "proto/codec.h"

enum gm_status gm_csv_encode_bound(const struct gm_matrix *matrix, uint64_t *ret_bytes,
                                   struct gm_error *err);
enum gm_status gm_csv_encode(const struct gm_matrix *matrix,
                             const struct gm_encode_options *options, char *out, uint64_t capacity,
                             uint64_t *ret_len, struct gm_error *err);

#endif
