/* Amounts of memory: a whole number and a unit, 64KiB, 512MiB, 2GiB. */
#include <string.h>

#include "runtime/base/field/field_range.h"

static const struct {
    const char *name;
    int shift;
} units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};
enum { UNITS = sizeof(units) / sizeof(units[0]), DIGITS = 20 };

bool tdm__parse_size(const char *text, int64_t *bytes) {
    char digits[DIGITS];
    int64_t number;
    const size_t length = strspn(text, "0123456789");
    if (length == 0 || length >= sizeof(digits) || (text[0] == '0' && length > 1)) return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!tdm__parse_int(digits, &number)) return false;
    const char *unit = text + length + (text[length] == ' ');
    for (int i = 0; i < UNITS; i++)
        if (strcmp(unit, units[i].name) == 0 && number <= INT64_MAX >> units[i].shift) {
            *bytes = number << units[i].shift;
            return true;
        }
    return false;
}

void tdm__print_size(int64_t bytes, tdm_text *out) {
    int i = 0;
    while (i + 1 < UNITS && (bytes == 0 || bytes % ((int64_t)1 << units[i].shift) != 0)) i++;
    tdm__text_printf(out, "%lld%s", (long long)(bytes >> units[i].shift), units[i].name);
}
