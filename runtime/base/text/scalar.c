/* Scalars and words: reading and writing numbers without the locale, and "did you mean". */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/text/text.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool tdm__parse_int(const char *text, int64_t *out) {
    const char *at = text;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    if (!is_digit(*at) || (at[0] == '0' && at[1] != '\0')) return false;
    int64_t value = 0; /* negated, because negative numbers have the larger range */
    for (; *at != '\0'; at++) {
        if (*at == '_' && is_digit(at[1])) continue;
        if (!is_digit(*at)) return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, *at - '0', &value)) return false;
    }
    if (!negative && value == INT64_MIN) return false;
    *out = negative ? value : -value;
    return true;
}

bool tdm__is_decimal(const char *at) {
    int digits = 0;
    if (*at == '-' || *at == '+') at++;
    for (; is_digit(*at); at++) digits++;
    if (*at == '.') {
        for (at++; is_digit(*at); at++) digits++;
    }
    if (digits == 0) return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '-' || *at == '+') at++;
        if (!is_digit(*at)) return false;
        while (is_digit(*at)) at++;
    }
    return *at == '\0';
}

static double read_double(const char *text) {
    int error = errno;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = c == (locale_t)0 ? strtod(text, NULL) : strtod_l(text, NULL, c);
    if (c != (locale_t)0) freelocale(c);
    errno = error;
    return value;
}

bool tdm__parse_float(const char *text, double *out) {
    if (!tdm__is_decimal(text)) return false;
    double value = read_double(text);
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}

bool tdm__parse_bool(const char *text, bool *out) {
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) return false;
    *out = yes;
    return true;
}

static void format(char *out, size_t bytes, const char *pattern, ...) TDM_PRINTF(3, 4);
static void format(char *out, size_t bytes, const char *pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    tdm__format(out, bytes, pattern, arguments);
    va_end(arguments);
}

/* The fewest decimal digits of a positive finite number that read back as the same number, and its decimal exponent. */
static int shortest_digits(double value, char digits[18], int *exponent) {
    char text[40];
    for (int precision = 1;; precision++) {
        format(text, sizeof(text), "%.*e", precision - 1, value);
        if (precision < 17 && read_double(text) != value) continue;
        int count = 0;
        const char *at = text;
        for (; *at != 'e'; at++) {
            if (is_digit(*at)) digits[count++] = *at;
        }
        *exponent = (int)strtol(at + 1, NULL, 10);
        while (count > 1 && digits[count - 1] == '0') count--;
        digits[count] = '\0';
        return count;
    }
}

/* Numbers from 0.01 to below 1e15 are printed without an exponent, because people read them at a glance. */
enum { PLAIN_FROM = -2, PLAIN_BELOW = 15 };

void tdm__print_float(char *out, double value) {
    if (isnan(value)) {
        strcpy(out, ".nan");
        return;
    }
    if (signbit(value)) *out++ = '-';
    value = fabs(value);
    if (isinf(value) || value == 0.0) {
        strcpy(out, value == 0.0 ? "0" : ".inf");
        return;
    }
    char digits[18];
    int exponent;
    int count = shortest_digits(value, digits, &exponent);
    if (exponent < PLAIN_FROM || exponent >= PLAIN_BELOW) {
        format(out, 31, "%c.%se%+d", digits[0], count > 1 ? digits + 1 : "0", exponent);
    } else if (exponent < 0) {
        format(out, 31, "0.%.*s%s", -exponent - 1, "0", digits);
    } else if (count <= exponent + 1) {
        format(out, 31, "%s%.*s", digits, exponent + 1 - count, "00000000000000");
    } else {
        format(out, 31, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    }
}

enum { WORD_MAX = 63 };

static int min_int(int a, int b) {
    return a < b ? a : b;
}

int tdm__text_order(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool tdm__text_ends_in(const char *text, const char *ending) {
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

int tdm__text_distance(const char *a, const char *b) {
    int row[3][WORD_MAX + 1];
    int a_length = (int)strnlen(a, WORD_MAX), b_length = (int)strnlen(b, WORD_MAX);
    for (int j = 0; j <= b_length; j++) row[0][j] = j;
    for (int i = 1; i <= a_length; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= b_length; j++) {
            now[j] = min_int(min_int(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_int(now[j], before[j - 2] + 1);
        }
    }
    return row[a_length % 3][b_length];
}

/* Folds case, and '-' to '_': people mix those up in words that they know. Returns the length. */
static int fold(char out[WORD_MAX + 1], const char *word) {
    int i = 0;
    for (; i < WORD_MAX && word[i] != '\0'; i++) {
        const char c = word[i];
        out[i] = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[i] = '\0';
    return i;
}

const char *tdm_text_nearest(const char *word, const char *const *candidates, int count) {
    char given[WORD_MAX + 1], other[WORD_MAX + 1];
    if (word == NULL || candidates == NULL) return NULL;
    const int length = fold(given, word);
    int best = length / 3 > 1 ? length / 3 : 1;
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        if (abs(fold(other, candidates[i]) - length) > best)
            continue; /* at least as many letters to insert or delete */
        int distance = tdm__text_distance(given, other);
        if (distance < length && (nearest == NULL ? distance <= best : distance < best)) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

const char *tdm__print_bytes(char *out, uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    format(out, 32, "%.*f %s", unit > 0 && value < 100, value, units[unit]);
    return out;
}
