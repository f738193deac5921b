#include "runtime/base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t tdm__now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double tdm__ms_since(int64_t start_ns) {
    return (double)(tdm__now_ns() - start_ns) * 1e-6;
}

void tdm__utc_stamp(char out[24]) {
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || utc.tm_year > 8099) {
        snprintf(out, 24, "00000000T000000Z"); /* a clock far outside of any year with four digits */
        return;
    }
    strftime(out, 24, "%Y%m%dT%H%M%SZ", &utc);
}
