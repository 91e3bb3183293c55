/*
 * document.c - see document.h. A member for which there is no memory is missed by nobody: jansson
 * makes NULL of it, and NULL is what leaves a member out. So its memory is asked for here, and
 * what it did not get is remembered until the text is wanted.
 */
#include "server/api/document.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local bool lacking;

static void *take(size_t bytes)
{
    void *memory = malloc(bytes);

    lacking = lacking || !memory;
    return memory;
}

void gm_document_init(void)
{
    json_set_alloc_funcs(take, free);
}

char *gm_document_text(json_t *document, size_t json_flags)
{
    char *text = document ? json_dumps(document, json_flags) : NULL;

    if (lacking) {
        free(text);
        text = NULL;
    }
    lacking = false;
    json_decref(document);
    return text;
}
