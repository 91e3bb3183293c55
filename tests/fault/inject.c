/* inject.c - counts calls, and makes one fail. */
#include "inject.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    unsigned functions;
    struct inject_count count[INJECT_FUNCTIONS_MAX];
    char function[64]; /* of the plan; "" for none */
    unsigned long n;
    cudaError_t error;
    void (*fired)(cudaError_t error);
    bool has_fired;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

void inject_reset(void)
{
    pthread_mutex_lock(&state.lock);
    state.functions = 0;
    state.function[0] = '\0';
    state.has_fired = false;
    pthread_mutex_unlock(&state.lock);
}

void inject_at(const char *function, unsigned long n, cudaError_t error,
               void (*fired)(cudaError_t error))
{
    inject_reset();
    pthread_mutex_lock(&state.lock);
    snprintf(state.function, sizeof(state.function), "%s", function);
    state.n = n;
    state.error = error;
    state.fired = fired;
    pthread_mutex_unlock(&state.lock);
}

bool inject_has_fired(void)
{
    pthread_mutex_lock(&state.lock);
    bool fired = state.has_fired;
    pthread_mutex_unlock(&state.lock);
    return fired;
}

unsigned inject_counts(struct inject_count ret[INJECT_FUNCTIONS_MAX])
{
    pthread_mutex_lock(&state.lock);
    unsigned functions = state.functions;
    memcpy(ret, state.count, functions * sizeof(ret[0]));
    pthread_mutex_unlock(&state.lock);
    return functions;
}

/* The lock is held. */
static unsigned long count_call(const char *function)
{
    unsigned i = 0;

    while (i < state.functions && strcmp(state.count[i].function, function) != 0)
        i++;
    if (i == state.functions) {
        if (i == INJECT_FUNCTIONS_MAX)
            abort();
        state.count[state.functions++] = (struct inject_count){function, 0};
    }
    return ++state.count[i].calls;
}

cudaError_t gm_cuda_inject(const char *function)
{
    pthread_mutex_lock(&state.lock);
    bool fires = count_call(function) == state.n && strcmp(function, state.function) == 0;
    cudaError_t error = fires ? state.error : cudaSuccess;
    state.has_fired |= fires;
    pthread_mutex_unlock(&state.lock);
    if (fires && state.fired)
        state.fired(error);
    return error;
}

static __attribute__((constructor)) void read_environment(void)
{
    const char *text = getenv("INJECT_FAULT");
    char function[64];
    unsigned long n;
    int error;

    if (text && sscanf(text, "%63[A-Za-z]:%lu:%d", function, &n, &error) == 3)
        inject_at(function, n, (cudaError_t)error, NULL);
}
