/* multipart_header.h - the lines that multipart/form-data is written with: multipart.c reads them.
 */
#ifndef GM_PROTO_MULTIPART_HEADER_H
#define GM_PROTO_MULTIPART_HEADER_H

#include "multipart.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The boundary that a Content-Type states, terminated. */
enum gm_status gm_multipart_boundary(const char *content_type,
                                     char ret[GM_MULTIPART_BOUNDARY_MAX + 1], struct gm_error *err);

/*
 * Reads a part's header: `len` bytes of fields, each line ended by CR LF, the last of them empty.
 * It is changed, and what *ret points to lies in it.
 */
enum gm_status gm_multipart_header_read(char *header, size_t len, struct gm_multipart_part *ret,
                                        struct gm_error *err);

#ifdef __cplusplus
}
#endif
#endif
