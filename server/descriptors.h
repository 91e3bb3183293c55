/*
 * descriptors.h - how many connections this process may have: each takes a descriptor, of which
 * the system allows so many (ulimit -n, LimitNOFILE=).
 */
#ifndef GM_SERVER_DESCRIPTORS_H
#define GM_SERVER_DESCRIPTORS_H

#include "proto/status.h"

/* Takes as many as this process may have: what it gets unasked is a number for programs that
 * cannot handle more. */
void gm_descriptors_raise(void);

/*
 * CONNECTIONS_MAX, or what is left beside those that are open, `others` that are still to be
 * opened and OTHER_DESCRIPTORS. Where that is less than CONNECTIONS_MIN the error says how many
 * there would have to be.
 */
enum gm_status gm_descriptors_connections(unsigned others, unsigned *ret, struct gm_error *err);

#endif
