/* access_log.h - the line that the log has for each request. */
#ifndef GM_SERVER_ACCESS_LOG_H
#define GM_SERVER_ACCESS_LOG_H

#include "server/request.h"

/* whole: its reply was sent to the last byte. */
void gm_access_log(const struct gm_request *request, bool whole);

#endif
