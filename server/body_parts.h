/*
 * body_parts.h - a body that is multipart/form-data: parts named a, b and c are operands, each in
 * a form of its own, and all others parameters. They come in any order.
 *
 * Binary parts stream into their operands' memory; text parts are collected, one behind the other,
 * and decoded when all is there. So whatever a parameter changes for a text it may stand anywhere.
 * For what has streamed already it may not come too late: what shape and type bare elements have,
 * and on which device operands go.
 */
#ifndef GM_SERVER_BODY_PARTS_H
#define GM_SERVER_BODY_PARTS_H

#include "proto/multipart.h"

#include <stddef.h>

struct gm_parts;
struct gm_request;

/* The same steps as body.h has; request->body.parts is set by the first. */
enum gm_status gm_parts_open(struct gm_request *request, struct gm_error *err);
enum gm_status gm_parts_push(struct gm_request *request, const void *bytes, size_t len,
                             struct gm_error *err);
enum gm_status gm_parts_end(struct gm_request *request, struct gm_error *err);
enum gm_status gm_parts_decode(struct gm_request *request, struct gm_error *err);
void gm_parts_close(struct gm_parts *parts); /* NULL is fine */

#endif
