/* commands.h - the commands of gemmctl, as main.c lists them, and what they share. */
#ifndef GM_CLIENTS_C_GEMMCTL_COMMANDS_H
#define GM_CLIENTS_C_GEMMCTL_COMMANDS_H

#include "clients/c/gemmctl/options.h"

#include <jansson.h>

/* One command: `name` is what was typed; args are what follows it. */
typedef enum gm_exit gm_command(struct gemmd_client *client, struct gm_options *options,
                                const char *name, char **args, int count);

gm_command gm_command_operate; /* transpose, matmul, add, flip */
gm_command gm_command_eval;
gm_command gm_command_report; /* compare, explain */
gm_command gm_command_choose, gm_command_kernels, gm_command_devices, gm_command_stats;
gm_command gm_command_bench, gm_command_top;
gm_command gm_command_key; /* of a file, without a daemon: its client is NULL */
gm_command gm_command_put, gm_command_get, gm_command_list, gm_command_delete; /* named matrices */

/* Says what the daemon keeps now, by a reply that has its shape and type. */
enum gm_exit gm_say_kept(const struct gm_options *options, const char *name,
                         const struct gemmd_reply *reply);

/* How many operands an operation takes; false (and said) if it is none of ours. */
bool gm_operation_takes(const char *op, size_t *ret_least, size_t *ret_most);

/* GET path as JSON. NULL: it failed, and nothing was said. */
json_t *gm_try_json(struct gemmd_client *client, const struct gm_options *options, const char *path,
                    struct gemmd_error *err);
/* The same. NULL: it failed, was said, and *ret_status is how to end. */
json_t *gm_get_json(struct gemmd_client *client, const struct gm_options *options, const char *path,
                    enum gm_exit *ret_status);
/* GET path, and print what comes: for --json. */
enum gm_exit gm_print_document(struct gemmd_client *client, const struct gm_options *options,
                               const char *path);

/* The text of a member, or "". Never NULL. */
const char *gm_json_text(const json_t *object, const char *name);
double gm_json_number(const json_t *object, const char *name); /* 0 where there is none */

#endif
