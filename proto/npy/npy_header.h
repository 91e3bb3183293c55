/*
 * npy_header.h - the head of an NPY file, which precedes the elements. Pure functions; codec_npy.c
 * moves the bytes.
 *
 *   "\x93NUMPY"  major  minor  length (2 bytes; 4 from version 2 on)  dict  spaces  "\n"
 */
#ifndef GM_PROTO_NPY_NPY_HEADER_H
#define GM_PROTO_NPY_NPY_HEADER_H

#include "proto/codec.h"

#define GM_NPY_MAGIC "\x93NUMPY"
#define GM_NPY_MAGIC_LEN 6
#define GM_NPY_PREFIX_MIN 10 /* magic, version, length in version 1 */
#define GM_NPY_PREFIX_MAX 12 /* from version 2 on */

/* numpy's own limit for files it does not trust. Three keys of a matrix need 140 characters. */
#define GM_NPY_HEADER_MAX 10000

/* Advice for a file that lost bytes to curl's -d. */
#define GM_NPY_CURL_HINT "a file sent by curl arrives whole with --data-binary, damaged with -d"

struct gm_npy_header {
    enum gm_dtype dtype; /* GM_V2 may mean bf16: the request decides */
    bool big_endian;     /* elements are byte-swapped here */
    bool fortran_order;
    struct gm_shape shape;
};

/* Checks the version at prefix[6..8). */
enum gm_status gm_npy_version(const unsigned char *prefix, unsigned *ret_major,
                              struct gm_error *err);

/* Reads the dict, text[0..len), of a file of that version. */
enum gm_status gm_npy_header_read(const char *text, size_t len, unsigned major,
                                  struct gm_npy_header *ret, struct gm_error *err);

/* Writes a head of version 1.0, magic to newline, padded to a multiple of 64 bytes. Returns its
 * length. */
size_t gm_npy_header_write(const struct gm_matrix *matrix, char out[GM_HEAD_MAX]);

/*
 * Finds the type of a descr such as "<f4" (opaque elements of 2 bytes: GM_V2). Error: GM_BAD_DTYPE
 * if no matrix can have the type.
 */
enum gm_status gm_npy_descr_read(const char *descr, size_t len, enum gm_dtype *ret_dtype,
                                 bool *ret_big_endian, struct gm_error *err);

#endif
