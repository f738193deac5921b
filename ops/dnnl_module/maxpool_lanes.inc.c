/* Max pooling of LANES neighbouring channels at a time, included by passes.inc.c for 16 and for 8.
 *
 * PyTorch's rule: the window is scanned in row-major order and a strictly larger value wins, so the first maximum gets
 * the whole gradient; a NaN wins over everything, the last one of them. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, LANES)

typedef float NAME(floats_) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(ints_) __attribute__((vector_size(LANES * 4)));
typedef uint8_t NAME(bytes_) __attribute__((vector_size(LANES)));
#define FLOATS NAME(floats_)
#define INTS NAME(ints_)
#define BYTES NAME(bytes_)

static inline FLOATS NAME(load_)(const float *from) {
    FLOATS v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline INTS NAME(choose_)(INTS where, INTS a, INTS b) {
    return (where & a) | (~where & b);
}

/* `c` lies wholly in the image for nearly all outputs; the compiler keeps best and won in registers. */
static inline void NAME(pool_point_)(const tdm_dnnl_pool *pool, const clip *c, const float *x, float *y,
                                     uint8_t *winner) {
    FLOATS best = (FLOATS){0} - INFINITY;
    INTS won = (INTS){0} + place_of(pool, c, c->begin[0], c->begin[1]);
    for (int64_t row = c->begin[0]; row < c->end[0]; row++) {
        for (int64_t column = c->begin[1]; column < c->end[1]; column++) {
            const FLOATS v = NAME(load_)(x + (row * pool->in[1] + column) * pool->inner);
            const INTS wins = (INTS)(v > best) | (INTS)(v != v);
            best = (FLOATS)NAME(choose_)(wins, (INTS)v, (INTS)best);
            won = NAME(choose_)(wins, (INTS){0} + place_of(pool, c, row, column), won);
        }
    }
    memcpy(y, &best, sizeof best);
    if (winner == NULL) return;
    const BYTES narrow = __builtin_convertvector(won, BYTES);
    memcpy(winner, &narrow, sizeof narrow);
}

static void NAME(maxpool_forward_)(const tdm_dnnl_pool *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                                   int64_t end) {
    const int64_t inner = pool->inner, plane = pool->in[0] * pool->in[1] * inner;
    int64_t at = begin * pool->out[0] * pool->out[1] * inner;
    for (int64_t k = begin; k < end; k++) {
        for (int64_t p = 0; p < pool->out[0]; p++) {
            for (int64_t q = 0; q < pool->out[1]; q++, at += inner) {
                const clip c = clip_of(pool, p, q);
                for (int64_t j = 0; j < inner; j += LANES)
                    NAME(pool_point_)(pool, &c, x + k * plane + j, y + at + j, winner != NULL ? winner + at + j : NULL);
            }
        }
    }
}

static inline void NAME(spread_point_)(const tdm_dnnl_pool *pool, const clip *c, const float *dy, const uint8_t *winner,
                                       float *dx, bool adds) {
    BYTES narrow;
    memcpy(&narrow, winner, sizeof narrow);
    const INTS won = __builtin_convertvector(narrow, INTS), v = (INTS)NAME(load_)(dy);
    for (int64_t row = c->begin[0]; row < c->end[0]; row++) {
        for (int64_t column = c->begin[1]; column < c->end[1]; column++) {
            float *to = dx + (row * pool->in[1] + column) * pool->inner;
            FLOATS part = (FLOATS)((INTS)(won == place_of(pool, c, row, column)) & v);
            if (adds) part += NAME(load_)(to);
            memcpy(to, &part, sizeof part);
        }
    }
}

static void NAME(maxpool_backward_)(const tdm_dnnl_pool *pool, const float *dy, const uint8_t *winner, float *dx,
                                    int64_t begin, int64_t end) {
    const int64_t inner = pool->inner, plane = pool->in[0] * pool->in[1] * inner;
    const bool adds = overlaps(pool);
    int64_t at = begin * pool->out[0] * pool->out[1] * inner;
    for (int64_t k = begin; k < end; k++) {
        for (int64_t p = 0; p < pool->out[0]; p++) {
            for (int64_t q = 0; q < pool->out[1]; q++, at += inner) {
                const clip c = clip_of(pool, p, q);
                for (int64_t j = 0; j < inner; j += LANES)
                    NAME(spread_point_)(pool, &c, dy + at + j, winner + at + j, dx + k * plane + j, adds);
            }
        }
    }
}

#undef FLOATS
#undef INTS
#undef BYTES
#undef NAME
#undef JOIN
#undef JOIN_
