/* Reads what people type: "25Gb,20us", a connection; "46ms,107ms,6.6ms", the times of a step. */
#include <math.h>
#include <string.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/scale/scale.h"

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const double bit = (1 - TDM_LINK_FRAMES) / 8;

/* Splits "25Gb" into a number above or equal to 0 and what is behind it. */
static bool read_number(const char *text, size_t length, double *number, const char **behind) {
    char digits[40];
    const size_t count = strspn(text, "0123456789.");
    if (count == 0 || count > length || count >= sizeof(digits)) return false;
    memcpy(digits, text, count);
    digits[count] = '\0';
    *behind = text + count;
    return tdm__parse_float(digits, number);
}

static const unit *find(const unit *units, const char *name, size_t length) {
    for (; units->name != NULL; units++)
        if (strlen(units->name) == length && memcmp(units->name, name, length) == 0) return units;
    return NULL;
}

/* The bytes per second of a unit, such as "Gb/s": a power of 1000, bits or bytes; "per second" may be left out. 0: it
 * is no unit. */
static double rate_unit(const char *at, size_t length) {
    static const unit powers[] = {{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {NULL, 0}};
    static const unit names[] = {{"b", 0}, {"bit", 0}, {"b/s", 0}, {"bit/s", 0}, {"bps", 0},
                                 {"B", 1}, {"B/s", 1}, {"Bps", 1}, {NULL, 0}};
    const unit *power = length > 0 ? find(powers, at, 1) : NULL;
    const unit *name = find(names, at + (power != NULL), length - (power != NULL));
    if (name == NULL) return 0;
    return (power != NULL ? power->factor : 1) * (name->factor > 0 ? name->factor : bit);
}

static bool read_rate(const char *text, size_t length, double *out) {
    const char *behind = NULL;
    double number = 0;
    if (!read_number(text, length, &number, &behind)) return false;
    const double factor = rate_unit(behind, length - (size_t)(behind - text));
    *out = number * factor;
    return *out > 0;
}

static bool read_with(const unit *units, const char *text, size_t length, double *out) {
    const char *behind = NULL;
    double number = 0;
    if (!read_number(text, length, &number, &behind)) return false;
    const unit *found = find(units, behind, length - (size_t)(behind - text));
    if (found == NULL) return false;
    *out = number * found->factor;
    return true;
}

tdm_status tdm_link_parse(const char *text, tdm_link *out) {
    static const unit costs[] = {{"ps", 1e-12}, {"ns", 1e-9}, {NULL, 0}};
    if (text == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_link_parse: a pointer is NULL");
    TDM_EXTRA(SCALE);
    tdm_link link = {0, 0, NAN};
    const size_t rate = strcspn(text, ","), rest = text[rate] == ',' ? rate + 1 : rate;
    const size_t latency = strcspn(text + rest, ","), last = rest + latency;
    if (!read_rate(text, rate, &link.rate))
        TDM_FAIL(
            TDM_E_USAGE,
            "'%s': a connection begins with its rate, such as 25Gb or 25Gbit/s (bits) or 3GB/s (bytes), got '%.*s'",
            text, (int)rate, text);
    if (!read_with(times, text + rest, latency, &link.latency))
        TDM_FAIL(TDM_E_USAGE,
                 "'%s': behind the rate comes the latency, such as 25Gb,20us (ns, us, ms or s), got '%.*s'", text,
                 (int)latency, text + rest);
    if (text[last] == ',' && !read_with(costs, text + last + 1, strlen(text + last + 1), &link.cost))
        TDM_FAIL(TDM_E_USAGE,
                 "'%s': behind the latency comes the processor's time for a byte, such as 1.2ns (ps or ns), got '%s'",
                 text, text + last + 1);
    *out = link;
    return TDM_OK;
}

tdm_status tdm_scale_times_parse(const char *text, double out[4]) {
    if (text == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_scale_times_parse: a pointer is NULL");
    TDM_EXTRA(SCALE);
    double seconds[4] = {0, 0, 0, NAN};
    const char *at = text;
    for (int i = 0; *at != '\0' || i < 3; i++) {
        const size_t length = strcspn(at, ",");
        if (i == 4 || !read_with(times, at, length, &seconds[i]) || (at[length] == ',' && at[length + 1] == '\0'))
            TDM_FAIL(TDM_E_USAGE,
                     "'%s': the times of a step are forward, backward, the rest, and, optionally, the jitter of "
                     "their sum, such as 46ms,107ms,6.6ms,3ms (ns, us, ms or s)",
                     text);
        at += length + (at[length] == ',');
    }
    if (!(seconds[0] + seconds[1] + seconds[2] > 0)) TDM_FAIL(TDM_E_USAGE, "'%s': a step takes some time", text);
    memcpy(out, seconds, sizeof(seconds));
    return TDM_OK;
}
