/* json.h - JSON as results of the command: nine digits, ASCII, one line. */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdio.h>

#include <jansson.h>

json_t *json_number(double value);        /* null for what JSON does not have */
void json_print(json_t *value, FILE *to); /* a line; takes the value */

#endif
