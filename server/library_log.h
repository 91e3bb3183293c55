/*
 * library_log.h - what the HTTP library says in its log. It refuses by itself what is no HTTP, with
 * a page of its own or by closing the connection, and tells of it nowhere else: those are counted
 * from its words here. A test sends it each kind, in case the words change.
 */
#ifndef GM_SERVER_LIBRARY_LOG_H
#define GM_SERVER_LIBRARY_LOG_H

#include "server/stats.h"

#include <stdarg.h>

void gm_library_log(struct gm_stats *stats, const char *format, va_list args);

#endif
