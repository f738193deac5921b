/* Tables from byte to byte: ImageOps' posterize, solarize, autocontrast and equalize. */
#include "runtime/image/canvas.h"

enum { VALUES = 256 };

/* The table of one channel is applied to it. */
static void apply(tdm_canvas *canvas, int channel, const unsigned char table[VALUES]) {
    const size_t bytes = tdm__pixels_bytes(&canvas->now), step = (size_t)canvas->now.channels;
    for (size_t i = (size_t)channel; i < bytes; i += step) canvas->now.data[i] = table[canvas->now.data[i]];
}

static void count_values(const tdm_canvas *canvas, int channel, int64_t count[VALUES]) {
    const size_t bytes = tdm__pixels_bytes(&canvas->now), step = (size_t)canvas->now.channels;
    for (int i = 0; i < VALUES; i++) count[i] = 0;
    for (size_t i = (size_t)channel; i < bytes; i += step) count[canvas->now.data[i]]++;
}

void tdm__canvas_posterize(tdm_canvas *canvas, int bits) {
    unsigned char table[VALUES];
    for (int i = 0; i < VALUES; i++) table[i] = (unsigned char)(i & ~((1 << (8 - bits)) - 1));
    for (int c = 0; c < canvas->now.channels; c++) apply(canvas, c, table);
}

void tdm__canvas_solarize(tdm_canvas *canvas, int threshold) {
    unsigned char table[VALUES];
    for (int i = 0; i < VALUES; i++) table[i] = (unsigned char)(i < threshold ? i : 255 - i);
    for (int c = 0; c < canvas->now.channels; c++) apply(canvas, c, table);
}

void tdm__canvas_autocontrast(tdm_canvas *canvas) {
    for (int c = 0; c < canvas->now.channels; c++) {
        int64_t count[VALUES];
        unsigned char table[VALUES];
        int low = 0, high = VALUES - 1;
        count_values(canvas, c, count);
        while (low < VALUES - 1 && count[low] == 0) low++;
        while (high > 0 && count[high] == 0) high--;
        if (high <= low) continue;
        const double scale = 255.0 / (high - low), offset = -low * scale;
        for (int i = 0; i < VALUES; i++) {
            const int value = (int)(i * scale + offset);
            table[i] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
        apply(canvas, c, table);
    }
}

void tdm__canvas_equalize(tdm_canvas *canvas) {
    for (int c = 0; c < canvas->now.channels; c++) {
        int64_t count[VALUES], sum = 0, last = 0, at;
        unsigned char table[VALUES];
        int different = 0;
        count_values(canvas, c, count);
        for (int i = 0; i < VALUES; i++) {
            if (count[i] == 0) continue;
            sum += last = count[i];
            different++;
        }
        const int64_t step = (sum - last) / 255;
        if (different <= 1 || step == 0) continue;
        at = step / 2;
        for (int i = 0; i < VALUES; i++) {
            const int64_t value = at / step;
            table[i] = (unsigned char)(value > 255 ? 255 : value);
            at += count[i];
        }
        apply(canvas, c, table);
    }
}
