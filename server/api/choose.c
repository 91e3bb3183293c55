/*
 * choose.c - GET /v1/choose/{op}: the kernels that can compute it, what each is estimated to take,
 * and which one `auto` takes.
 *
 * For the GPU model that `gpu` names, else for the request's device. Nothing runs, and shapes are
 * enough.
 */
#include "kernels/choose/choose.h"
#include "server/request/request.h"
#include "server/text.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const struct gm_op *op;
    const char *device; /* "cuda:0"; the model, where `gpu` named it */
    const char *profile;
    const char *taken; /* what auto takes; NULL: nothing */
    struct gm_device_facts facts;
    struct gm_candidate candidates[GM_CANDIDATES_MAX];
    unsigned count;
};

enum gm_status gm_handle_choose_plan(struct gm_plan *plan, const struct gm_plan_input *in,
                                     struct gm_error *err)
{
    if (!gm_params_take_auto(&in->parsed->params))
        return gm_fail(err, GM_BAD_PARAMETER,
                       "/v1/choose says what auto takes, and does not take 'kernel'");
    plan->bytes = plan->scratch_bytes = 0;
    return gm_select(&plan->op, plan->device->facts, NULL, &plan->variant, err);
}

static struct choice choose(const struct gm_request *r)
{
    const struct gm_device_facts *facts = r->plan.device->facts;
    const struct gm_gpu *gpu = r->parsed.params.gpu;
    const struct gm_variant *traced;
    struct choice c = {.op = &r->plan.op, .facts = *facts};

    if (!gpu && facts->kind == GM_DEVICE_SIM)
        gpu = facts->gpu;
    c.device = gpu ? gpu->name : r->plan.device->name;
    c.facts.profile = gm_profile_for(gpu, facts);
    if (gpu) {
        c.facts.gpu = gpu;
        c.taken = gm_select_for_gpu(c.op, gpu, facts, &traced);
        c.count = gm_candidates_for_gpu(c.op, gpu, facts, c.candidates);
    } else {
        c.taken = r->plan.variant->name;
        c.count = gm_candidates(c.op, facts, c.candidates);
    }
    c.profile = gm_profile_gpu(c.facts.profile);
    return c;
}

/* The parts of an estimate, and what each is called on a GPU and on a CPU. */
static const struct part {
    const char *name, *words, *on_host;
    size_t at;
} parts[] = {
#define PART(name, words, on_host)                                                                 \
    {                                                                                              \
#name, words, on_host, offsetof(struct gm_kernel_time, name)                               \
    }
    PART(launch, "launches", "calls of inner loops"),
    PART(math, "arithmetic", "arithmetic"),
    PART(shared, "shared memory and L1 cache", "a core's own caches"),
    PART(l2, "the L2 cache", "scattered lines"),
    PART(dram, "memory", "memory"),
    PART(wait, "waiting for memory", "waking threads"),
    PART(passes, "further passes", "further passes"),
#undef PART
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static double part_of(const struct gm_kernel_time *e, const struct part *part)
{
    double value;

    memcpy(&value, (const char *)e + part->at, sizeof(value));
    return value;
}

static const struct part *longest(const struct gm_kernel_time *e)
{
    const struct part *most = &parts[0];

    for (size_t i = 1; i < PARTS; i++)
        if (part_of(e, &parts[i]) > part_of(e, most))
            most = &parts[i];
    return most;
}

static bool on_host(const struct choice *c)
{
    return c->facts.kind == GM_DEVICE_CPU && !c->facts.gpu;
}

/* Why it is taken, in a sentence. */
static void write_reason(FILE *out, const struct choice *c)
{
    const struct gm_candidate *first = &c->candidates[0], *second = &c->candidates[1];

    if (!c->taken)
        fprintf(out, "no kernel of this build runs it there");
    else if (strcmp(c->taken, "grouped") == 0)
        fprintf(out,
                "grouped: a small job, which reads and writes the host's memory over the link, "
                "in one launch with others");
    else if (c->count == 0 || !(first->estimate.us >= 0) || strcmp(first->name, c->taken) != 0)
        fprintf(out, "%s: without an estimate", c->taken);
    else {
        const struct part *most = longest(&first->estimate);
        fprintf(out, "%s: estimated at %.1f us, most of it %s", c->taken, first->estimate.us,
                on_host(c) ? most->on_host : most->words);
        if (c->count > 1 && second->estimate.us >= 0)
            fprintf(out, "; %s would take %.0f%% longer", second->name,
                    100 * (second->estimate.us / first->estimate.us - 1));
        if (strcmp(c->taken, "multistage_tuned") == 0) {
            struct gm_tile_choice tiles = gm_choose_tiles(c->op, &c->facts);
            static const struct gm_tile_config configs[] = {GM_TILE_CONFIGS};
            const struct gm_tile_config *t = &configs[tiles.config];
            fprintf(out, ". Tiles of %u x %u, K in steps of %u", t->BM, t->BN, t->BK);
            if (tiles.splits > 1)
                fprintf(out, ", split among %u blocks", tiles.splits);
            if (tiles.repack[0] || tiles.repack[1])
                fprintf(out, "; %s repacked first",
                        !tiles.repack[1]  ? "a is"
                        : tiles.repack[0] ? "a and b are"
                                          : "b is");
        }
    }
}

static char *reason_of(const struct choice *c)
{
    struct gm_text_stream stream;

    if (!gm_text_stream_begin(&stream))
        return NULL;
    write_reason(stream.out, c);
    return gm_text_stream_end(&stream, NULL);
}

/* Why it has no estimate. */
static const char *note_of(const struct choice *c, const struct gm_candidate *candidate)
{
    enum gm_op_kind kind = candidate->variant ? candidate->variant->op : c->op->kind;
    struct gm_device_facts facts = c->facts;

    if (facts.gpu)
        facts.kind = GM_DEVICE_CUDA;
    return strcmp(candidate->name, "grouped") == 0
               ? "taken for small jobs alone, by what their copies take"
           : gm_lacks_numbers(c->op, kind, candidate->name, &facts)
               ? "the profile has no numbers for it; gemmd --tune measures them"
               : "auto never takes it";
}

static json_t *candidate_json(const struct choice *c, const struct gm_candidate *candidate)
{
    const struct gm_kernel_time *e = &candidate->estimate;
    json_t *o = json_object();

    json_object_set_new(o, "kernel", json_string(candidate->name));
    if (!(e->us >= 0)) {
        json_object_set_new(o, "note", json_string(note_of(c, candidate)));
        return o;
    }
    json_object_set_new(o, "estimated_us", json_real(round(e->us * 1e3) * 1e-3));
    for (size_t i = 0; i < PARTS; i++)
        json_object_set_new(o, parts[i].name, json_real(round(part_of(e, &parts[i]) * 1e3) * 1e-3));
    json_object_set_new(o, "most", json_string(longest(e)->name));
    return o;
}

static char *choice_json(const struct choice *c, const char *reason)
{
    json_t *o = json_object(), *list = json_array(), *shapes = json_array();
    char shape[GM_SHAPE_TEXT_MAX];

    json_object_set_new(o, "op", json_string(gm_op_name(c->op->kind)));
    json_object_set_new(o, "device", json_string(c->device));
    json_object_set_new(o, "dtype", json_string(gm_dtype_name(c->op->result.dtype)));
    for (unsigned i = 0; i < c->op->operands; i++)
        json_array_append_new(shapes, json_string(gm_matrix_shape_text(&c->op->operand[i], shape)));
    json_object_set_new(o, "shapes", shapes);
    if (c->profile)
        json_object_set_new(o, "profile", json_string(c->profile));
    if (c->taken)
        json_object_set_new(o, "kernel", json_string(c->taken));
    json_object_set_new(o, "reason", json_string(reason));
    for (unsigned i = 0; i < c->count; i++)
        json_array_append_new(list, candidate_json(c, &c->candidates[i]));
    json_object_set_new(o, "candidates", list);
    return gm_document_text(o, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
}

static char *choice_text(const struct choice *c, const char *reason)
{
    static const char *const names[GM_OPERANDS_MAX] = {"a", "b", "c"};
    struct gm_text_stream stream;
    char shape[GM_SHAPE_TEXT_MAX];

    if (!gm_text_stream_begin(&stream))
        return NULL;
    fprintf(stream.out, "%s of %s", gm_op_name(c->op->kind), gm_dtype_name(c->op->result.dtype));
    for (unsigned i = 0; i < c->op->operands; i++)
        fprintf(stream.out, ", %s %s", names[i], gm_matrix_shape_text(&c->op->operand[i], shape));
    fprintf(stream.out, ", on %s", c->device);
    if (c->profile)
        fprintf(stream.out, ", by the profile of %s", c->profile);
    fprintf(stream.out, "\n\nauto takes %s.\n\n%-18s %11s", reason, "kernel", "estimate us");
    for (size_t i = 0; i < PARTS && c->profile; i++)
        fprintf(stream.out, " %9s", parts[i].name);
    for (unsigned i = 0; i < c->count; i++) {
        const struct gm_kernel_time *e = &c->candidates[i].estimate;
        fprintf(stream.out, "\n%-18s", c->candidates[i].name);
        if (e->us >= 0)
            fprintf(stream.out, " %11.1f", e->us);
        else
            fprintf(stream.out, " %11s  %s", "none", note_of(c, &c->candidates[i]));
        for (size_t j = 0; j < PARTS && e->us >= 0; j++)
            fprintf(stream.out, " %9.1f", part_of(e, &parts[j]));
    }
    fprintf(stream.out, "\n");
    return gm_text_stream_end(&stream, NULL);
}

enum gm_progress gm_handle_choose(struct gm_request *r)
{
    struct gm_error error;
    char *text = NULL;

    if (gm_request_plan(r, GM_PLAN_ALL_OPERANDS, &error) != GM_OK)
        return gm_request_fail(r, &error);
    const struct choice c = choose(r);
    char *reason = reason_of(&c);
    if (reason)
        text = r->plan.report == GM_REPORT_JSON ? choice_json(&c, reason) : choice_text(&c, reason);
    free(reason);
    return gm_request_reply(r, gm_report_media_type(r->plan.report), text);
}
