/* manual.h - man pages and shell completion out of the tables. */
#ifndef MANUAL_H
#define MANUAL_H

#include "tools/commands/tool.h"

#include <jansson.h>

/* Every key of the file, sections before what is in them: "train.batch.per_device" and its place in the schema. */
typedef void (*manual_visit)(void *user, const char *path, const json_t *key, bool is_section);
void manual_each_key(const json_t *schema, manual_visit visit, void *user);
/* The names that a value is one of, an array; an object for a boolean; NULL for anything else. */
const json_t *manual_names(const json_t *key);
const char *manual_text(const json_t *object, const char *key); /* "" if absent */

void manual_command(FILE *to, const json_t *schema); /* tandem.1 */
void manual_file(FILE *to, const json_t *schema);    /* tandem.yaml.5 */
void manual_bash(FILE *to, const json_t *schema);

#endif
