#include "modes/compress/powersgd_matrix.h"

#include <math.h>

enum { LANES = 16, BLOCK = 128 };

/* Number i goes to lane i mod LANES; the lanes are added as a binary tree. */
static double dot(const float *a, const float *b, size_t count) {
    double lane[LANES] = {0};
    size_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int i = 0; i < LANES; i++) lane[i] += (double)a[at + i] * (double)b[at + i];
    for (int i = 0; at + (size_t)i < count; i++) lane[i] += (double)a[at + i] * (double)b[at + i];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

void tdm__power_left(float *p, const float *m, const float *q, size_t rows, size_t columns, size_t rank) {
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < rank; k++) p[k * rows + i] = (float)dot(m + i * columns, q + k * columns, columns);
}

void tdm__power_right(float *q, const float *m, const float *p, size_t rows, size_t columns, size_t rank) {
    for (size_t first = 0; first < columns; first += BLOCK) {
        const size_t count = columns - first < BLOCK ? columns - first : BLOCK;
        for (size_t k = 0; k < rank; k++) {
            double sum[BLOCK] = {0};
            for (size_t i = 0; i < rows; i++) {
                const double factor = p[k * rows + i];
                const float *row = m + i * columns + first;
                for (size_t j = 0; j < count; j++) sum[j] += factor * (double)row[j];
            }
            for (size_t j = 0; j < count; j++) q[k * columns + first + j] = (float)sum[j];
        }
    }
}

void tdm__power_product(float *m, const float *p, const float *q, size_t rows, size_t columns, size_t rank) {
    for (size_t i = 0; i < rows; i++) {
        float *row = m + i * columns;
        for (size_t j = 0; j < columns; j++) row[j] = p[i] * q[j];
        for (size_t k = 1; k < rank; k++) {
            const float factor = p[k * rows + i];
            const float *column = q + k * columns;
            for (size_t j = 0; j < columns; j++) row[j] += factor * column[j];
        }
    }
}

/* Takes from `column` what lies along the `count` columns before it, twice: once leaves rounding errors that count
 * where little is left. */
static void subtract(float *column, const float *columns, size_t length, size_t count) {
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < count; k++) {
            const float *other = columns + k * length;
            const double along = dot(column, other, length);
            for (size_t i = 0; i < length; i++) column[i] = (float)((double)column[i] - along * (double)other[i]);
        }
    }
}

static void scale(float *column, size_t length, double factor) {
    for (size_t i = 0; i < length; i++) column[i] = (float)((double)column[i] * factor);
}

void tdm__power_orthogonalize(float *columns, size_t length, size_t rank) {
    for (size_t k = 0; k < rank; k++) {
        float *column = columns + k * length;
        const double before = sqrt(dot(column, column, length));
        if (before > 0) scale(column, length, 1 / before);
        subtract(column, columns, length, k);
        double norm = sqrt(dot(column, column, length));
        for (size_t unit = 0; !(norm > 1e-5) && unit < length && !isnan(norm); unit++) {
            for (size_t i = 0; i < length; i++) column[i] = i == unit ? 1.0f : 0.0f;
            subtract(column, columns, length, k);
            norm = sqrt(dot(column, column, length));
        }
        scale(column, length, 1 / norm);
    }
}
