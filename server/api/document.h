/*
 * document.h - JSON documents that are whole or not there at all. Who builds one adds member by
 * member and need not look whether each found memory: that shows in the end.
 */
#ifndef GM_SERVER_API_DOCUMENT_H
#define GM_SERVER_API_DOCUMENT_H

#include <stddef.h>

struct json_t;

/* Once, before the first document. */
void gm_document_init(void);

/*
 * The text of a document that was built on this thread since the last call, for free(); takes over
 * the document, which may be NULL. NULL: something of it found no memory.
 */
char *gm_document_text(struct json_t *document, size_t json_flags);

#endif
