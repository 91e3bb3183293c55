/* The account: laps that add up, and rates that follow from them. */
#include "kernels/device_facts.h"
#include "server/request/account.h"
#include "tests/unit/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gm_variant variant = {.name = "test"};

static struct gm_account_job make_job(struct gm_task *task, struct gm_device_facts *facts)
{
    memset(task, 0, sizeof *task);
    memset(facts, 0, sizeof *facts);
    task->variant = &variant;
    task->repeat = 1;
    task->times = (struct gm_times){.h2d = -1, .prepare = -1, .kernel = 100, .d2h = -1};
    const struct gm_op_options options = {0};
    const bool present[GM_OPERANDS_MAX] = {true, true, false};
    const struct gm_matrix operand[GM_OPERANDS_MAX] = {
        {.dtype = GM_F32, .batch = 1, .rows = 100, .cols = 50},
        {.dtype = GM_F32, .batch = 1, .rows = 50, .cols = 200}};
    struct gm_error error;
    CHECK_STATUS(gm_op_init(&task->op, GM_OP_MATMUL, &options, operand, present, &error), GM_OK,
                 &error);
    facts->has_kernel_times = true;
    return (struct gm_account_job){
        .id = "i", .device = "cpu:0", .op = &task->op, .task = task, .facts = facts, .batch = 1};
}

static json_t *account_json(const struct gm_account_job *job)
{
    struct gm_account a;
    json_error_t fault;

    gm_account_start(&a, 1000);
    gm_account_lap(&a, GM_STAGE_RECEIVE, 11000); /* 10 us */
    gm_account_lap(&a, GM_STAGE_DECODE, 16000);  /* 5 us */
    gm_account_ran(&a, &job->task->times, 36000, 138000);
    gm_account_lap(&a, GM_STAGE_QUEUE, 141000);
    gm_account_lap(&a, GM_STAGE_ENCODE, 148000);
    char *text = gm_account_json(&a, job, 148000);
    CHECK(text != NULL && strchr(text, '\n') == NULL);
    json_t *stats = json_loads(text, 0, &fault);
    CHECK(stats != NULL);
    free(text);
    return stats;
}

static double number(const json_t *stats, const char *name)
{
    const json_t *value = json_object_get(stats, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* To the five digits that rates are written with; false for NaN, a member that is not there. */
static bool close_to(double actual, double expected)
{
    return fabs(actual - expected) <= 5e-5 * fabs(expected);
}

static void test_times(void)
{
    struct gm_task task;
    struct gm_device_facts facts;
    struct gm_account_job job = make_job(&task, &facts);
    json_t *stats = account_json(&job);
    const json_t *us = json_object_get(stats, "us");

    CHECK(number(us, "receive") == 10);
    CHECK(number(us, "decode") == 5);
    CHECK(number(us, "queue") == 23); /* 20 before the device and 3 after it */
    CHECK(number(us, "kernel") == 100);
    CHECK(number(us, "encode") == 7);
    CHECK(number(us, "total") == 147); /* 2 us of the 102 that the job took were its start */
    CHECK(!json_object_get(us, "h2d") && !json_object_get(us, "prepare") &&
          !json_object_get(us, "d2h"));
    CHECK(!json_object_get(stats, "repeat") && !json_object_get(stats, "concurrent"));
    json_decref(stats);
}

static void test_rates(void)
{
    struct gm_task task;
    struct gm_device_facts facts;
    struct gm_account_job job = make_job(&task, &facts);
    const double bytes = 4 * (100 * 50 + 50 * 200 + 100 * 200), flops = 2.0 * 100 * 50 * 200;

    json_t *stats = account_json(&job);
    CHECK(number(stats, "bytes_min") == bytes);
    CHECK(number(stats, "flops") == flops);
    CHECK(close_to(number(stats, "effective_gbs"), bytes / 100e-6 * 1e-9));
    CHECK(close_to(number(stats, "gflops"), flops / 100e-6 * 1e-9));
    CHECK(close_to(number(stats, "intensity"), flops / bytes));
    /* Ceilings that were not measured leave no trace. */
    CHECK(!json_object_get(stats, "copy_gbs") && !json_object_get(stats, "percent_of_copy"));
    CHECK(!json_object_get(stats, "roof") && !json_object_get(stats, "roofline_gflops"));
    json_decref(stats);

    facts.copy_gbs = 10;
    facts.peak_gflops[GM_F32] = 50;
    facts.peak_name[GM_F32] = "fp32";
    stats = account_json(&job); /* intensity 14.3: 143 GFLOP/s under the copy, 50 at the peak */
    CHECK(strcmp(json_string_value(json_object_get(stats, "bound")), "compute") == 0);
    CHECK(strcmp(json_string_value(json_object_get(stats, "roof")), "fp32") == 0);
    CHECK(number(stats, "roofline_gflops") == 50);
    CHECK(close_to(number(stats, "percent_of_roofline"), 40));
    CHECK(close_to(number(stats, "percent_of_copy"), 14));
    json_decref(stats);

    facts.peak_gflops[GM_F32] = 500;
    stats = account_json(&job);
    CHECK(strcmp(json_string_value(json_object_get(stats, "bound")), "memory") == 0);
    CHECK(strcmp(json_string_value(json_object_get(stats, "roof")), "dram") == 0);
    CHECK(close_to(number(stats, "roofline_gflops"), flops / bytes * 10));
    json_decref(stats);

    /* A ceiling that is passed by more than measurements differ; not by what a cache holds. */
    CHECK(!json_object_get(stats = account_json(&job), "doubt"));
    json_decref(stats);
    facts.copy_gbs = bytes / 100e-6 * 1e-9 / 1.2;
    CHECK(strcmp(json_string_value(json_object_get(stats = account_json(&job), "doubt")),
                 "copy_gbs") == 0);
    json_decref(stats);
    facts.cache_bytes = (uint64_t)bytes;
    CHECK(!json_object_get(stats = account_json(&job), "doubt"));
    json_decref(stats);
    facts.peak_gflops[GM_F32] = flops / 100e-6 * 1e-9 / 1.2;
    CHECK(strcmp(json_string_value(json_object_get(stats = account_json(&job), "doubt")),
                 "roofline_gflops") == 0);
    json_decref(stats);

    facts.has_kernel_times = false; /* a simulator: no rates at all */
    stats = account_json(&job);
    CHECK(!json_object_get(stats, "effective_gbs") && !json_object_get(stats, "gflops"));
    json_decref(stats);
}

/* What a simulator counted, and no kernel time. */
static void test_accesses(void)
{
    struct gm_task task;
    struct gm_device_facts facts;
    struct gm_account_job job = make_job(&task, &facts);

    json_t *stats = account_json(&job);
    CHECK(!json_object_get(stats, "accesses"));
    json_decref(stats);
    task.has_accesses = true;
    task.times.kernel = -1;
    task.accesses.kind[GM_GLOBAL_LOAD].units = 100;
    task.accesses.kind[GM_GLOBAL_LOAD].units_ideal = 90;
    task.accesses.kind[GM_GLOBAL_STORE].units = 7;
    task.accesses.kind[GM_GLOBAL_STORE].units_ideal = 6;
    task.accesses.kind[GM_SHARED_LOAD].units = 32;
    task.accesses.kind[GM_SHARED_LOAD].units_ideal = 1;
    task.accesses.barriers = 5;
    task.accesses.blocks = 4;
    task.accesses.warps = 32;
    stats = account_json(&job);
    const json_t *accesses = json_object_get(stats, "accesses");
    CHECK(number(accesses, "global_sectors") == 107);
    CHECK(number(accesses, "global_sectors_ideal") == 96);
    CHECK(number(accesses, "global_sectors_min") == 4.0 * (5000 + 10000 + 20000) / 32);
    CHECK(number(accesses, "shared_wavefronts") == 32);
    CHECK(number(accesses, "shared_wavefronts_ideal") == 1);
    CHECK(number(accesses, "barriers") == 5 && number(accesses, "blocks") == 4);
    CHECK(number(accesses, "warps") == 32);
    CHECK(!json_object_get(json_object_get(stats, "us"), "kernel"));
    json_decref(stats);
}

static void test_marks(void)
{
    struct gm_task task;
    struct gm_device_facts facts;
    struct gm_account_job job = make_job(&task, &facts);
    char timing[GM_SERVER_TIMING_MAX];
    struct gm_account a;

    job.batch = 3;
    task.volume =
        (struct gm_volume){.flops = 3e6, .bytes = 3.0 * 4 * (100 * 50 + 50 * 200 + 100 * 200)};
    job.concurrent = true;
    task.repeat = 5;
    task.times.kernel_min = 90;
    json_t *stats = account_json(&job);
    CHECK(number(stats, "batch") == 3);
    CHECK(number(stats, "bytes_min") == 3.0 * 4 * (100 * 50 + 50 * 200 + 100 * 200));
    CHECK(json_is_true(json_object_get(stats, "concurrent")));
    CHECK(number(stats, "repeat") == 5);
    CHECK(number(stats, "kernel_us_min") == 90 && number(stats, "kernel_us_median") == 100);
    json_decref(stats);

    gm_account_start(&a, 0);
    gm_account_lap(&a, GM_STAGE_RECEIVE, 1500000);
    a.us[GM_STAGE_KERNEL] = 12;
    a.total_us = 2000;
    gm_account_server_timing(&a, "tiled", timing);
    CHECK(strcmp(timing, "receive;dur=1.500000, kernel;dur=0.012000;desc=\"tiled\", "
                         "total;dur=2.000000") == 0);
}

int main(void)
{
    test_times();
    test_rates();
    test_accesses();
    test_marks();
    return check_report();
}
