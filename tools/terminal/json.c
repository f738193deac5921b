/* json.c - see json.h. */
#include "tools/terminal/json.h"

#include <math.h>

json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

void json_print(json_t *value, FILE *to) {
    json_dumpf(value, to, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    fputc('\n', to);
    json_decref(value);
}
