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

static term_color color_choice;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char bar[512];                  /* the visible bar; "" if there is none */
static long left_out, left_out_in_all; /* dropped lines: since the last line written; in total */
static bool is_torn;                   /* the last write ended within a line */

void term_set_color(term_color color) {
    color_choice = color;
}

/* The value of a variable, "" if it is not set. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

/* Held output is a stream without a descriptor (outlet.h). */
static int number_of(const FILE *stream) {
    return stream == stdout ? STDOUT_FILENO : STDERR_FILENO;
}

bool term_is_terminal(FILE *stream) {
    return isatty(number_of(stream)) && strcmp(variable("TERM"), "dumb") != 0;
}

static bool colored(FILE *stream) {
    if (color_choice != COLOR_AUTO) return color_choice == COLOR_ALWAYS;
    if (variable("NO_COLOR")[0]) return false;
    const char *forced = variable("CLICOLOR_FORCE");
    return (forced[0] && strcmp(forced, "0") != 0) || term_is_terminal(stream);
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
    if (ioctl(number_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    int width = atoi(variable("COLUMNS"));
    return width >= 20 && width < 10000 ? width : 80;
}

static bool write_whole(const char *text) {
    size_t bytes = strlen(text), done = outlet_put(STDERR_FILENO, text, bytes);
    if (done > 0) is_torn = done < bytes;
    return done == bytes;
}

static bool report_left_out(void) {
    if (left_out == 0) return true;
    FREED char *text = text_format("%standem: warning: %ld line%s dropped here: nobody read stderr\n",
                                   is_torn ? "\n" : "", left_out, left_out == 1 ? "" : "s");
    if (write_whole(text)) left_out = 0;
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

static void put_line(const char *before, term_style style, const char *mark, const char *text) {
    const char *on = mark[0] ? term_on(stderr, style) : "", *off = mark[0] ? term_off(stderr) : "";
    pthread_mutex_lock(&lock);
    FREED char *drawn = draw_bar();
    FREED char *whole = text_format("%s%s%s%s%s%s%s\n%s", term_is_terminal(stderr) ? clear_bar : "", before, on, mark,
                                    off, mark[0] && text[0] ? " " : "", text, drawn);
    write_line(whole);
    pthread_mutex_unlock(&lock);
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
    FREED char *text = text_format_printable(format, args);
    va_end(args);
    put_line("", TERM_PLAIN, "", text);
}

void term_mark(term_style style, const char *before, const char *mark, const char *format, ...) {
    va_list args;
    va_start(args, format);
    FREED char *text = text_format_printable(format, args), *front = text_printable(before, false);
    FREED char *shown_mark = text_printable(mark, false);
    va_end(args);
    put_line(front, style, shown_mark, text);
}

void term_print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    FREED char *text = text_format_printable(format, args);
    va_end(args);
    puts(text);
}

void term_bar(const char *text) {
    pthread_mutex_lock(&lock);
    snprintf(bar, sizeof bar, "%s", text);
    FREED char *drawn = draw_bar(), *whole = text_format("%s%s", clear_bar, drawn);
    outlet_try(STDERR_FILENO, whole); /* a lost bar is redrawn soon */
    pthread_mutex_unlock(&lock);
}

void term_bar_end(bool stays) {
    pthread_mutex_lock(&lock);
    FREED char *drawn = draw_bar(), *whole = text_format("%s%s\n", clear_bar, drawn);
    if (bar[0] && stays) write_line(whole);
    if (bar[0] && !stays) outlet_try(STDERR_FILENO, clear_bar);
    bar[0] = 0;
    pthread_mutex_unlock(&lock);
}
