/* manual.h - man pages and shell completion, generated from the tables. */
#ifndef MANUAL_H
#define MANUAL_H

#include "tools/tool.h"

#include <jansson.h>

/* Calls `visit` for every key of the file, a section before its keys: with the path, "train.batch.per_device", and the
 * key's part of the schema. */
typedef void (*manual_visit)(void *user, const char *path, const json_t *key, bool is_section);
void manual_each_key(const json_t *schema, manual_visit visit, void *user);
/* For an enum the array of its names, for a boolean an object, NULL for anything else. */
const json_t *manual_names(const json_t *key);
const char *manual_text(const json_t *object, const char *key); /* "" if absent */

/* The pages. `self` is the verb that writes them, which the list of verbs does not have. */
void manual_command(FILE *to, const json_t *schema, const tool_verb *self); /* tandem.1 */
void manual_file(FILE *to, const json_t *schema, const tool_verb *self);    /* tandem.yaml.5 */
void manual_bash(FILE *to, const json_t *schema, const tool_verb *self);

#endif
