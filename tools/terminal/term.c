/* term.c - see term.h. The state is static because a process has one terminal. */
#include "tools/terminal/term.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/terminal/outlet.h"

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_choice;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char bar[512];                  /* the visible bar; "" if there is none */
static long left_out, left_out_in_all; /* dropped lines: since the last line written; in total */
static bool is_torn;                   /* the last write ended within a line */

bool term_set_color(const char *color) {
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(color, names[i]) != 0) continue;
        color_choice = i == 0 ? COLOR_AUTO : i == 1 ? COLOR_ALWAYS : COLOR_NEVER;
        return true;
    }
    return false;
}

static bool set_in_environment(const char *name) {
    const char *value = getenv(name);
    return value && value[0];
}

bool term_is_terminal(FILE *stream) {
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && !(kind && strcmp(kind, "dumb") == 0);
}

static bool colored(FILE *stream) {
    if (color_choice != COLOR_AUTO) return color_choice == COLOR_ALWAYS;
    if (set_in_environment("NO_COLOR")) return false;
    const char *forced = getenv("CLICOLOR_FORCE");
    if (forced && forced[0] && strcmp(forced, "0") != 0) return true;
    return term_is_terminal(stream);
}

const char *term_on(FILE *stream, term_style style) {
    static const char *const escapes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};
    return colored(stream) ? escapes[style] : "";
}

const char *term_off(FILE *stream) {
    return colored(stream) ? "\033[0m" : "";
}

int term_width(FILE *stream) {
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    return width >= 20 && width < 10000 ? width : 80;
}

static bool write_whole(const char *text) {
    size_t bytes = strlen(text), done = outlet_put(STDERR_FILENO, text, bytes);
    if (done > 0) is_torn = done < bytes;
    return done == bytes;
}

static bool report_left_out(void) {
    if (left_out == 0) return true;
    char *text = text_format("%standem: warning: %ld line%s dropped here: nobody read stderr\n", is_torn ? "\n" : "",
                             left_out, left_out == 1 ? "" : "s");
    if (write_whole(text)) left_out = 0;
    free(text);
    return left_out == 0;
}

/* One write per line, so that lines of several ranks do not mix. A line that nobody reads is dropped. The number of
 * dropped lines is printed before the next line that can be written. */
static void write_line(const char *text) {
    if (report_left_out() && (write_whole(text) || errno != ETIMEDOUT)) return;
    left_out++;
    left_out_in_all++;
}

/* Removes the bar, wherever it is on the screen. Also turns line wrap on again, in case only a part of the bar was
 * written. */
static const char clear_bar[] = "\r\033[?7h\033[J";

/* The bar, cut to the current width, with line wrap off. The cursor stays at the start of the bar. If the terminal is
 * made narrower it wraps the bar, but the cursor stays at the start, so clear_bar removes all of it. */
static char *draw_bar(void) {
    if (!bar[0]) return text_copy("");
    return text_format("\033[?7l%.*s\033[?7h\r", term_width(stderr) - 1, bar);
}

static char *printable(const char *format, va_list args) TDM_PRINTF(1, 0);
static char *printable(const char *format, va_list args) {
    char *text = text_format_list(format, args), *out = text_printable(text, false);
    free(text);
    return out;
}

static void put_line(const char *before, term_style style, const char *mark, const char *text) {
    const char *on = mark[0] ? term_on(stderr, style) : "", *off = mark[0] ? term_off(stderr) : "";
    pthread_mutex_lock(&lock);
    char *drawn = draw_bar();
    char *whole = text_format("%s%s%s%s%s%s%s\n%s", term_is_terminal(stderr) ? clear_bar : "", before, on, mark, off,
                              mark[0] && text[0] ? " " : "", text, drawn);
    write_line(whole);
    pthread_mutex_unlock(&lock);
    free(whole);
    free(drawn);
}

void term_text(const char *text) {
    pthread_mutex_lock(&lock);
    write_line(text);
    pthread_mutex_unlock(&lock);
}

long term_left_out(void) {
    pthread_mutex_lock(&lock);
    long count = left_out_in_all;
    pthread_mutex_unlock(&lock);
    return count;
}

void term_line(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = printable(format, args);
    va_end(args);
    put_line("", TERM_PLAIN, "", text);
    free(text);
}

void term_mark(term_style style, const char *before, const char *mark, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = printable(format, args), *front = text_printable(before, false);
    char *shown_mark = text_printable(mark, false);
    va_end(args);
    put_line(front, style, shown_mark, text);
    free(shown_mark);
    free(front);
    free(text);
}

void term_print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = printable(format, args);
    va_end(args);
    puts(text);
    free(text);
}

void term_bar(const char *text) {
    pthread_mutex_lock(&lock);
    snprintf(bar, sizeof bar, "%s", text);
    char *drawn = draw_bar();
    char *whole = text_format("%s%s", clear_bar, drawn);
    outlet_try(STDERR_FILENO, whole); /* a lost bar is redrawn soon */
    pthread_mutex_unlock(&lock);
    free(whole);
    free(drawn);
}

void term_bar_keep(void) {
    pthread_mutex_lock(&lock);
    if (bar[0]) {
        char *drawn = draw_bar();
        char *whole = text_format("%s%s\n", clear_bar, drawn);
        write_line(whole);
        free(whole);
        free(drawn);
    }
    bar[0] = 0;
    pthread_mutex_unlock(&lock);
}

void term_bar_clear(void) {
    pthread_mutex_lock(&lock);
    if (bar[0]) outlet_try(STDERR_FILENO, clear_bar);
    bar[0] = 0;
    pthread_mutex_unlock(&lock);
}
