/* report_svg.c - curves and stacked bars as inline SVG. Colours are classes of the page's style sheet, so that they fit
 * light, dark and print. Lines also differ in dashes, for readers who cannot tell the colours apart. */
#include "tools/report/report.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 250, LEFT = 58, RIGHT = 12, TOP = 36, BOTTOM = 34, POINTS_MAX = 800 };

void html_text(FILE *to, const char *text) {
    static const char *const escapes[] = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    FREED char *shown = text_printable(text, true);
    for (const unsigned char *c = (unsigned char *)shown; *c; c++) {
        const char *escape = *c < sizeof escapes / sizeof escapes[0] ? escapes[*c] : NULL;
        if (escape) fputs(escape, to);
        if (!escape) fputc(*c, to);
    }
}

void html_element(FILE *to, const char *tag, const char *text) {
    fprintf(to, "<%s>", tag);
    html_text(to, text);
    fprintf(to, "</%s>", tag);
}

static void begin_figure(FILE *to, const char *title, int height) {
    fprintf(to, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\">", WIDTH, height);
    html_element(to, "title", title);
    fputs("\n<text class=\"title\" x=\"4\" y=\"18\">", to);
    html_text(to, title);
    fputs("</text>\n", to);
}

typedef struct frame {
    double x0, x1, y0, y1, scale;
} frame;

static double pixel_x(const frame *f, double x) {
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double pixel_y(const frame *f, double y) {
    return HEIGHT - BOTTOM - (y * f->scale - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

static bool find_frame(frame *f, const chart_line *lines, int count, double scale) {
    *f = (frame){DBL_MAX, -DBL_MAX, DBL_MAX, -DBL_MAX, scale};
    for (int i = 0; i < count; i++) {
        const series *s = lines[i].points;
        for (size_t k = 0; k < s->count; k++) {
            double y = s->y[k] * scale;
            if (!isfinite(y)) continue;
            f->x0 = fmin(f->x0, s->x[k]);
            f->x1 = fmax(f->x1, s->x[k]);
            f->y0 = fmin(f->y0, y);
            f->y1 = fmax(f->y1, y);
        }
    }
    if (f->x0 > f->x1) return false;
    if (f->x0 == f->x1) f->x1 = f->x0 + 1;
    double margin = (f->y1 - f->y0) * 0.05;
    /* Numbers that differ in their last digits only leave no room for grid lines. */
    if (margin <= fabs(f->y1) * 1e-9) margin = fabs(f->y1) * 0.1 + 1e-9;
    double low = f->y0 - margin;
    f->y0 = f->y0 >= 0 && low < 0 ? 0 : low;
    f->y1 += margin;
    return true;
}

/* 1, 2 or 5 times a power of ten, so that about `count` steps span `range`. */
static double nice_step(double range, int count) {
    double raw = range / count, power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* The label of a grid line, without an exponent up to 1e15. */
static const char *tick(char out[32], double value) {
    if (fabs(value) >= 1e4 && fabs(value) < 1e15) return text_count(out, (int64_t)round(value));
    snprintf(out, 32, "%.4g", value);
    return out;
}

static void grid(FILE *to, const frame *f, const char *x_label) {
    char number[32];
    double step = nice_step(f->y1 - f->y0, 4);
    for (double y = ceil(f->y0 / step) * step; y <= f->y1; y += step) {
        double at = pixel_y(f, y / f->scale);
        fprintf(to,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, tick(number, fabs(y) < step * 1e-6 ? 0 : y));
    }
    step = fmax(1, nice_step(f->x1 - f->x0, 6));
    for (double x = ceil(f->x0 / step) * step; x <= f->x1; x += step) {
        fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", pixel_x(f, x), HEIGHT - BOTTOM + 16,
                tick(number, x));
    }
    fprintf(to, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, WIDTH - RIGHT,
            HEIGHT - BOTTOM, HEIGHT - BOTTOM);
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 4);
    html_text(to, x_label);
    fputs("</text>\n", to);
}

/* A long curve is reduced to the lowest and the highest point of each stretch, so that spikes stay visible. */
static void curve(FILE *to, const frame *f, const chart_line *line) {
    const series *s = line->points;
    size_t stretch = s->count / (POINTS_MAX / 2) + 1;
    bool started = false;
    fprintf(to, "<polyline class=\"line s%d%s\" points=\"", line->style, line->faint ? " faint" : "");
    for (size_t k = 0; k < s->count; k += stretch) {
        size_t low = k, high = k;
        for (size_t j = k; j < k + stretch && j < s->count; j++) {
            if (s->y[j] < s->y[low]) low = j;
            if (s->y[j] > s->y[high]) high = j;
        }
        size_t order[2] = {low < high ? low : high, low < high ? high : low};
        for (int i = 0; i < (low == high ? 1 : 2); i++) {
            if (!isfinite(s->y[order[i]])) continue;
            fprintf(to, "%s%.1f,%.1f", started ? " " : "", pixel_x(f, s->x[order[i]]), pixel_y(f, s->y[order[i]]));
            started = true;
        }
    }
    fputs("\"/>\n", to);
    if (s->count > 24 || line->faint) return;
    for (size_t k = 0; k < s->count; k++) {
        if (!isfinite(s->y[k])) continue;
        fprintf(to, "<circle class=\"dot s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", line->style, pixel_x(f, s->x[k]),
                pixel_y(f, s->y[k]));
    }
}

static void legend(FILE *to, const chart_line *lines, int count) {
    int x = WIDTH - RIGHT;
    for (int i = count - 1; i >= 0; i--) {
        if (lines[i].faint) continue;
        x -= 8 * tdm_text_columns(lines[i].label) + 40;
        fprintf(to, "<line class=\"line s%d\" x1=\"%d\" x2=\"%d\" y1=\"14\" y2=\"14\"/><text x=\"%d\" y=\"18\">",
                lines[i].style, x, x + 24, x + 29);
        html_text(to, lines[i].label);
        fputs("</text>\n", to);
    }
}

void svg_chart(FILE *to, const char *title, const chart_line *lines, int count, const char *x_label, double scale) {
    frame f;
    int labels = 0;
    if (!find_frame(&f, lines, count, scale)) return;
    for (int i = 0; i < count; i++) labels += !lines[i].faint;
    begin_figure(to, title, HEIGHT);
    grid(to, &f, x_label);
    for (int i = 0; i < count; i++) curve(to, &f, &lines[i]);
    if (labels > 1) legend(to, lines, count);
    fputs("</svg></figure>\n", to);
}

static void stack_row(FILE *to, const char *name, const char *const *parts, int part_count, const double *values,
                      double most, int y, const char *unit) {
    double x = 96, total = 0;
    fprintf(to, "<text x=\"88\" y=\"%d\" text-anchor=\"end\">", y + 17);
    html_text(to, name);
    fputs("</text>\n", to);
    for (int p = 0; p < part_count; p++) {
        if (!(values[p] > 0)) continue;
        double width = values[p] / most * (WIDTH - 96 - 84);
        fprintf(to, "<rect class=\"p%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"24\"><title>", p, x, y, width);
        html_text(to, parts[p]);
        fprintf(to, " %.4g %s</title></rect>\n", values[p], unit);
        x += width;
        total += values[p];
    }
    fprintf(to, "<text x=\"%.1f\" y=\"%d\">%.4g %s</text>\n", x + 6, y + 17, total, unit);
}

/* Lists the parts that at least one row has, on as many lines as needed. */
static void stack_legend(FILE *to, const char *const *parts, int part_count, const double *values, int row_count,
                         int y) {
    int x = 96;
    for (int p = 0; p < part_count; p++) {
        bool used = false;
        for (int r = 0; r < row_count; r++) used = used || values[r * part_count + p] > 0;
        if (!used) continue;
        int width = 26 + 7 * tdm_text_columns(parts[p]);
        if (x + width > WIDTH) {
            x = 96;
            y += 18;
        }
        fprintf(
            to,
            "<rect class=\"p%d\" x=\"%d\" y=\"%d\" width=\"9\" height=\"9\"/><text class=\"small\" x=\"%d\" y=\"%d\">",
            p, x, y - 8, x + 13, y);
        html_text(to, parts[p]);
        fputs("</text>\n", to);
        x += width;
    }
}

void svg_stack(FILE *to, const char *title, const char *const *rows, int row_count, const char *const *parts,
               int part_count, const double *values, const char *unit) {
    double most = 0;
    for (int r = 0; r < row_count; r++) {
        double total = 0;
        for (int p = 0; p < part_count; p++) total += fmax(0, values[r * part_count + p]);
        most = fmax(most, total);
    }
    if (most == 0) return;
    begin_figure(to, title, 34 + 34 * row_count + 42);
    for (int r = 0; r < row_count; r++) {
        stack_row(to, rows[r], parts, part_count, values + (ptrdiff_t)r * part_count, most, 32 + 34 * r, unit);
    }
    stack_legend(to, parts, part_count, values, row_count, 34 + 34 * row_count + 14);
    fputs("</svg></figure>\n", to);
}
