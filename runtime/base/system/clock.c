#include "runtime/base/system/clock.h"

#include <stdio.h>

double tdm__ms_since(int64_t start_ns) {
    return (double)(tdm__now_ns() - start_ns) * 1e-6;
}

enum { FIRST_REMINDER_S = 5, LATER_REMINDERS_S = 60 };

tdm_reminder tdm__reminder_start(void) {
    int64_t now = tdm__now_ns();
    return (tdm_reminder){.start_ns = now, .next_ns = now + (int64_t)FIRST_REMINDER_S * 1000000000};
}

bool tdm__reminder_is_due(tdm_reminder *reminder, int64_t now_ns, int *seconds) {
    if (now_ns < reminder->next_ns) return false;
    *seconds = (int)((now_ns - reminder->start_ns) / 1000000000);
    reminder->next_ns = now_ns + (int64_t)LATER_REMINDERS_S * 1000000000;
    return true;
}

void tdm__utc_stamp(const tdm_host *host, char out[24]) {
    const time_t now = (time_t)(tdm__host_ns(host, TDM_CLOCK_UTC) / 1000000000);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || utc.tm_year > 8099) {
        snprintf(out, 24, "00000000T000000Z"); /* the clock is far beyond year 9999 */
        return;
    }
    strftime(out, 24, "%Y%m%dT%H%M%SZ", &utc);
}
