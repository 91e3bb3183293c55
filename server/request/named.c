/*
 * named.c - named matrices of a request: those that it reads, and the one that it keeps.
 */
#include "server/request/request.h"

#include <stdio.h>
#include <string.h>

struct gm_matrix_caller gm_request_matrix_caller(const struct gm_request *r)
{
    struct gm_matrix_caller caller = {
        .has_key = *r->caller.name != '\0', .client = r->head.client, .quota = r->caller.quota};

    /* Without keys everybody has all roles, and matrices are their address's all the same. */
    caller.admin = caller.has_key && (r->caller.roles & GM_ROLE_ADMIN);
    if (caller.has_key)
        memcpy(caller.owner, r->caller.name, sizeof caller.owner);
    else
        snprintf(caller.owner, sizeof caller.owner, "@%016llx", (unsigned long long)caller.client);
    return caller;
}

/* Where a job with this operand runs; NULL: nowhere, as reports look at operands on the host. */
static const struct gm_device *place_of_refs(const struct gm_request *r)
{
    return r->route->reports > 0 ? NULL : r->plan.home;
}

enum gm_status gm_request_ref(void *cls, const char *name, struct gm_matrix_use *ret,
                              uint64_t *add_bytes, struct gm_error *err)
{
    struct gm_request *r = cls;
    const struct gm_matrix_caller caller = gm_request_matrix_caller(r);
    enum gm_status status = gm_request_pick_device(r, err);

    if (status == GM_OK)
        status = gm_matrix_take(&r->server->matrices, &caller, name, ret, err);
    if (status == GM_OK && caller.admin)
        r->caller.acted_as_admin |= gm_matrix_is_of_other(name, caller.owner);
    if (status == GM_OK)
        *add_bytes += gm_matrix_to_copy(ret, place_of_refs(r));
    return status;
}

enum gm_status gm_request_ref_data(void *cls, unsigned index, struct gm_error *err)
{
    struct gm_request *r = cls;
    struct gm_parsed *p = &r->parsed;

    if (index >= GM_OPERANDS_MAX) {
        struct gm_expression_operand *o = &p->expression->operand[index - GM_OPERANDS_MAX];
        return gm_matrix_data(&o->use, place_of_refs(r), &o->matrix.data, &o->on_device, err);
    }
    enum gm_status status = gm_matrix_data(&p->ref[index], place_of_refs(r),
                                           &p->operand[index].data, &p->on_device[index], err);

    if (status == GM_OK && r->plan.of.made) /* without the data, before the body was complete */
        r->plan.op.operand[index].data = p->operand[index].data;
    return status;
}

struct gm_matrix_terms gm_request_matrix_terms(const struct gm_request *r)
{
    return (struct gm_matrix_terms){.ttl_s = r->parsed.params.ttl_s,
                                    .share = r->parsed.params.share};
}

static enum gm_status still_wanted(const void *cls, struct gm_error *err)
{
    return gm_request_still_wanted(cls, err);
}

struct gm_conditions gm_request_conditions(const struct gm_request *r)
{
    return (struct gm_conditions){.if_match = r->head.if_match,
                                  .if_none_match = r->head.if_none_match,
                                  .still_wanted = still_wanted,
                                  .cls = r};
}

enum gm_status gm_request_publish(struct gm_request *r, bool *ret_created, struct gm_error *err)
{
    const struct gm_conditions conditions = gm_request_conditions(r);
    enum gm_status status = gm_matrix_publish(&r->run.kept, &conditions, ret_created, err);
    char text[GM_MATRIX_NAME_MAX + 64];

    if (status != GM_OK)
        return status;
    struct gm_matrix_facts facts = gm_matrix_facts_of(&r->run.kept);
    snprintf(text, sizeof text, "\"%s\"", facts.etag);
    gm_reply_header(&r->reply, "ETag", text);
    snprintf(text, sizeof text, "/v1/matrices/%s", facts.name);
    gm_reply_header(&r->reply, "Location", text);
    snprintf(text, sizeof text, "%s;device=\"%s\";durable=?%d", facts.name, facts.device,
             facts.durable);
    gm_reply_header(&r->reply, "Gemmd-Kept", text);
    return GM_OK;
}
