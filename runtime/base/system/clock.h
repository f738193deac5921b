/* Time: the kernel's monotonic clock for waits; the program's clocks for what is measured and shown. */
#ifndef TDM_BASE_CLOCK_H
#define TDM_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "runtime/base/call/host.h"

/* CLOCK_MONOTONIC, for waits and for what other processes compare: the kernel and they know no other clock. Inline,
 * because modules have no symbols of the library. */
static inline int64_t tdm__now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* The program's clock, or the system's: for what is shown, stored, or compared with a setting. */
static inline int64_t tdm__host_ns(const tdm_host *host, tdm_clock clock) {
    struct timespec now;
    if (tdm__host_has_clock(host)) return host->now_ns(host->user, clock);
    clock_gettime(clock == TDM_CLOCK_STEADY ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static inline int64_t tdm__steady_ns(const tdm_host *host) {
    return tdm__host_ns(host, TDM_CLOCK_STEADY);
}
/* For calls that take this struct: a time of the same clock, or a duration; not negative. */
static inline struct timespec tdm__timespec(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}
/* `ms` after now_ns. `ms` is capped at INT64_MAX / 2 ns, so that the sum cannot overflow. */
static inline int64_t tdm__deadline_ns(int64_t now_ns, int64_t ms) {
    const int64_t most = INT64_MAX / 2000000;
    return now_ns + (ms < most ? ms : most) * 1000000;
}
/* `ms` from now, but not after the deadline. */
static inline int64_t tdm__sooner_ns(int64_t deadline_ns, int64_t ms) {
    const int64_t then = tdm__deadline_ns(tdm__now_ns(), ms);
    return then < deadline_ns ? then : deadline_ns;
}
double tdm__ms_since(int64_t start_ns); /* milliseconds from start_ns until now, of tdm__now_ns */

/* A long wait warns after five seconds, and then every minute. */
typedef struct tdm_reminder {
    int64_t start_ns, next_ns;
} tdm_reminder;
tdm_reminder tdm__reminder_start(void);
/* Is a warning due? *seconds: how long the wait has lasted. */
bool tdm__reminder_is_due(tdm_reminder *reminder, int64_t now_ns, int *seconds);

void tdm__utc_stamp(const tdm_host *host, char out[24]); /* "20261120T143000Z", wall clock */

#endif
