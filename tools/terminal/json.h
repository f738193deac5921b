/* json.h - JSON as results of the command: nine digits, ASCII, one line. */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>

/* null for what JSON does not have */
static inline json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* Takes the value. */
static inline void json_print(json_t *value, FILE *to) {
    json_dumpf(value, to, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    fputc('\n', to);
    json_decref(value);
}

#endif
