/* What service.c, device.c and desktop.c learn: whether a point of the plane lies in a ring. */
#ifndef RING_H
#define RING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tandem/tandem.h>

enum { POINTS = 2048 };

typedef struct ring_data {
    float x[POINTS][2];
    int64_t label[POINTS]; /* 1: inside */
} ring_data;

/* A ring around (center, 0). */
static inline void ring_draw(ring_data *data, float center) {
    uint64_t h = 1;
    for (int i = 0; i < POINTS; i++) {
        h = h * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data->x[i][0] = (float)(h >> 48) / 32768.0f - 1.0f;
        data->x[i][1] = (float)(h >> 32 & 0xFFFF) / 32768.0f - 1.0f;
        const float a = data->x[i][0] - center, square = a * a + data->x[i][1] * data->x[i][1];
        data->label[i] = square > 0.16f && square < 0.64f;
    }
}

static inline tdm_source ring_source(const ring_data *data) {
    tdm_source source = TDM_SOURCE_INIT;
    source.count = POINTS, source.has_labels = 1, source.width = 2;
    source.x = data->x, source.targets = data->label;
    return source;
}

/* The fraction of points that y[POINTS][2] is right about. */
static inline double ring_accuracy(const ring_data *data, float y[POINTS][2]) {
    int right = 0;
    for (int i = 0; i < POINTS; i++) right += (y[i][1] > y[i][0]) == data->label[i];
    return (double)right / POINTS;
}

static inline tdm_status ring_config(tdm_config **out) {
    static const char text[] = "tandem: 1\nname: ring\nseed: 1\n"
                               "model: {input: 2, layers: [linear: 64, relu, linear: 64, relu, linear: 2]}\n"
                               "loss: cross_entropy\noptimizer: {type: adam, lr: 5e-3}\n"
                               "train: {steps: 800, batch: {per_device: 32}}\nrun: {dir: null}\n";
    tdm_status status = tdm_config_parse(out, NULL, text, strlen(text), "ring", NULL);
    return status == TDM_OK ? tdm_config_check(*out) : status;
}

#endif
