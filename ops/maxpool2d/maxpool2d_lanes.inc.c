/* Max pooling of LANES neighbouring channels at a time. maxpool2d_lanes.c includes this file for 16, 8 and 4.
 *
 * PyTorch's rule: the window is scanned in row-major order and a strictly larger value wins, so the first maximum gets
 * the whole gradient. A NaN wins over everything; of several NaN the last one wins. */
static inline INTS NAME(choose)(INTS where, INTS a, INTS b) {
    return (where & a) | (~where & b);
}

typedef struct {
    FLOATS value;
    INTS index;
} NAME(best);

/* `a` comes before `b` in the window. */
static inline __attribute__((always_inline)) NAME(best) NAME(better)(NAME(best) a, NAME(best) b) {
    const INTS wins = (INTS)(b.value > a.value) | (INTS)(b.value != b.value);
    return (NAME(best)){(FLOATS)NAME(choose)(wins, (INTS)b.value, (INTS)a.value), NAME(choose)(wins, b.index, a.index)};
}

/* The maximum of rows x columns points, of which the first has index `first` in its window. The rows do not wait for
 * each other. The loops are unrolled if the numbers are constants. */
static inline __attribute__((always_inline)) void NAME(pool_point)(const float *x, float *y, uint8_t *winner,
                                                                   int64_t across, int64_t down, int64_t rows,
                                                                   int64_t columns, int32_t first, int32_t width) {
    NAME(best) best = {{0}, {0}};
    for (int64_t i = 0; i < rows; i++) {
        const int32_t index = first + (int32_t)i * width;
        NAME(best) row = {NAME(load)(x + i * down), (INTS){0} + index};
        for (int64_t j = 1; j < columns; j++)
            row = NAME(better)(row,
                               (NAME(best)){NAME(load)(x + i * down + j * across), (INTS){0} + (index + (int32_t)j)});
        best = i == 0 ? row : NAME(better)(best, row);
    }
    memcpy(y, &best.value, sizeof best.value);
    if (winner == NULL) return;
    const BYTES index = __builtin_convertvector(best.index, BYTES);
    memcpy(winner, &index, sizeof index);
}

static inline __attribute__((always_inline)) void NAME(pool_planes)(const tdm_maxpool2d_planes *pool, const float *x,
                                                                    float *y, uint8_t *winner, int64_t begin,
                                                                    int64_t end) {
    const int64_t inner = pool->inner, row_step = pool->in[1] * inner;
    const int64_t down_step = pool->window.dilation[0] * row_step, across_step = pool->window.dilation[1] * inner;
    const int32_t width = (int32_t)pool->window.kernel[1];
    int64_t at = begin * pool->out[0] * pool->out[1] * inner;
    for (int64_t k = begin; k < end; k++) {
        for (int64_t p = 0; p < pool->out[0]; p++) {
            const clip row = clip_down(pool, p);
            for (int64_t q = 0; q < pool->out[1]; q++, at += inner) {
                const clip c = clip_across(pool, row, q);
                const float *from = x + ((k * pool->in[0] + c.begin[0]) * pool->in[1] + c.begin[1]) * inner;
                for (int64_t i = 0; i < inner; i += LANES) {
                    const int64_t j = i + LANES <= inner ? i : inner - LANES; /* some channels twice, if need be */
                    uint8_t *won = winner != NULL ? winner + at + j : NULL;
                    if (c.square > 0) prefetch_ahead(from + j, row_step, inner);
                    if (c.square == 2) {
                        NAME(pool_point)(from + j, y + at + j, won, inner, row_step, 2, 2, 0, 2);
                    } else if (c.square == 3) {
                        NAME(pool_point)(from + j, y + at + j, won, inner, row_step, 3, 3, 0, 3);
                    } else {
                        NAME(pool_point)
                        (from + j, y + at + j, won, across_step, down_step, c.rows, c.columns, c.first, width);
                    }
                }
            }
        }
    }
}

/* Without winners the compiler leaves out what finds them. */
static void NAME(forward)(const tdm_maxpool2d_planes *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                          int64_t end) {
    if (winner == NULL)
        NAME(pool_planes)(pool, x, y, NULL, begin, end);
    else
        NAME(pool_planes)(pool, x, y, winner, begin, end);
}

/* Writes dy to the point that won, and zero (or what dx already holds) to the others. */
static inline __attribute__((always_inline)) void NAME(spread_point)(const float *dy, const uint8_t *winner, float *dx,
                                                                     int64_t across, int64_t down, int64_t rows,
                                                                     int64_t columns, int32_t first, int32_t width,
                                                                     bool adds) {
    BYTES index;
    memcpy(&index, winner, sizeof index);
    const INTS won = __builtin_convertvector(index, INTS), v = (INTS)NAME(load)(dy);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            float *to = dx + i * down + j * across;
            FLOATS part = (FLOATS)((INTS)(won == first + (int32_t)i * width + (int32_t)j) & v);
            if (adds) part += NAME(load)(to);
            memcpy(to, &part, sizeof part);
        }
    }
}

static void NAME(backward)(const tdm_maxpool2d_planes *pool, const float *dy, const uint8_t *winner, float *dx,
                           int64_t begin, int64_t end) {
    const int64_t inner = pool->inner, row_step = pool->in[1] * inner;
    const int64_t down_step = pool->window.dilation[0] * row_step, across_step = pool->window.dilation[1] * inner;
    const int32_t width = (int32_t)pool->window.kernel[1];
    const bool adds = overlaps(pool), clears = adds || !covers(pool);
    int64_t at = begin * pool->out[0] * pool->out[1] * inner;
    for (int64_t k = begin; k < end; k++) {
        float *plane = dx + k * pool->in[0] * row_step;
        int64_t cleared = 0;
        for (int64_t p = 0; p < pool->out[0]; p++) {
            const clip row = clip_down(pool, p);
            if (clears) cleared = clear_rows(pool, plane, cleared, p);
            for (int64_t q = 0; q < pool->out[1]; q++, at += inner) {
                const clip c = clip_across(pool, row, q);
                float *to = plane + (c.begin[0] * pool->in[1] + c.begin[1]) * inner;
                for (int64_t j = 0; j < inner; j += LANES) {
                    const float *of = dy + at + j;
                    const uint8_t *won = winner + at + j;
                    if (c.square > 0 && !clears) prefetch_ahead(to + j, row_step, inner);
                    if (c.square == 2 && !adds) {
                        NAME(spread_point)(of, won, to + j, inner, row_step, 2, 2, 0, 2, false);
                    } else if (c.square == 3 && adds) {
                        NAME(spread_point)(of, won, to + j, inner, row_step, 3, 3, 0, 3, true);
                    } else {
                        NAME(spread_point)
                        (of, won, to + j, across_step, down_step, c.rows, c.columns, c.first, width, adds);
                    }
                }
            }
        }
    }
}

const tdm_maxpool2d_lanes TDM_ISA_NAME(NAME(tdm__maxpool2d_lanes)) = {NAME(forward), NAME(backward)};
