#include "tests/fuzz/gate.h"

#include "tests/fuzz/fuzz.h"

void gate_init(struct gate *gate, unsigned streams, unsigned batch_max)
{
    memset(gate, 0, sizeof *gate);
    gate->facts.kind = GM_DEVICE_CPU;
    gate->facts.streams = streams;
    gate->facts.batch_max = batch_max;
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

void gate_destroy(struct gate *gate)
{
    MUST(gate->active == 0);
    pthread_mutex_destroy(&gate->mutex);
    pthread_cond_destroy(&gate->changed);
}

bool gate_release(struct gate *gate, unsigned index, enum gm_status verdict)
{
    bool found = false;
    pthread_mutex_lock(&gate->mutex);
    for (unsigned stream = 0; stream < gate->facts.streams && !found; stream++) {
        struct gate_run *run = &gate->run[stream];
        if (!run->active || run->released || index-- > 0)
            continue;
        run->released = found = true;
        run->verdict = verdict;
    }
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
    return found;
}

void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void gate_poke(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

bool gate_ends(const struct gate_run *run)
{
    if (!run->active || run->released)
        return run->active;
    for (unsigned i = 0; i < run->n; i++)
        if (!atomic_load(&run->task[i]->stop))
            return false;
    return true;
}

static void end_task(struct gm_task *task, enum gm_status status)
{
    task->status = status;
    if (status != GM_OK)
        gm_fail(&task->error, status, "the gate was told to");
}

static enum gm_status gate_run(void *context, unsigned device, unsigned stream,
                               struct gm_task *task[], unsigned n)
{
    struct gate *gate = context;
    struct gate_run *run = &gate->run[stream];

    MUST(device == 0 && stream < gate->facts.streams && n >= 1 && n <= gate->facts.batch_max);
    pthread_mutex_lock(&gate->mutex);
    MUST(!run->active);
    *run = (struct gate_run){.active = true, .n = n};
    memcpy(run->task, task, n * sizeof *task);
    gate->active++;
    gate->began(gate->cls, run);
    while (!gate->open && !gate_ends(run))
        pthread_cond_wait(&gate->changed, &gate->mutex);
    enum gm_status status = run->released ? run->verdict : GM_OK;
    for (unsigned i = 0; i < n; i++) {
        bool stopped = atomic_load(&task[i]->stop) && status != GM_DEVICE_LOST;
        end_task(task[i], stopped ? GM_CANCELLED : status);
    }
    run->active = false;
    gate->active--;
    gate->ended(gate->cls, run);
    pthread_mutex_unlock(&gate->mutex);
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

static enum gm_status gate_run_here(void *context, unsigned device, struct gm_task *task)
{
    struct gate *gate = context;
    struct gate_run run = {.active = true, .n = 1, .task = {task}};

    MUST(device == 0);
    pthread_mutex_lock(&gate->mutex);
    gate->began(gate->cls, &run);
    enum gm_status status = gate->here_verdict;
    end_task(task, status);
    gate->ended(gate->cls, &run);
    pthread_mutex_unlock(&gate->mutex);
    return status == GM_DEVICE_LOST ? GM_DEVICE_LOST : GM_OK;
}

static const struct gm_device_facts *gate_describe(void *context, unsigned index)
{
    struct gate *gate = context;
    return index == 0 ? &gate->facts : NULL;
}

const struct gm_backend gate_backend = {
    .name = "gate", .describe = gate_describe, .run = gate_run, .run_here = gate_run_here};
