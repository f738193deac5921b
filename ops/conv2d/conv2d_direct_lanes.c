/* See conv2d_direct_lanes.h. Both kernels hold a rectangle of sums in registers, at most 8 by 2 vectors: points by
 * channels of out, or channels of x by channels of dy. So each number that is read serves several sums. */
#include "ops/conv2d/conv2d_direct_lanes.h"

#include "runtime/backends/dnnl/kit/vectors.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = TDM_CONV_BLOCK, PAIR = 2, GROUP = 8, TAP = BLOCK * BLOCK /* weights of a tap in a pair of blocks */ };

INLINE floats_16 multiply_add(floats_16 a, floats_16 b, floats_16 sum) {
    return (floats_16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}

INLINE floats_16 all(float number) {
    return (floats_16)_mm512_set1_ps(number);
}

INLINE floats_16 clamp(floats_16 v) {
    return (floats_16)(~(v < 0.0f) & (ints_16)v);
}

INLINE void store(float *to, floats_16 v) {
    memcpy(to, &v, sizeof v);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- points ---- */

/* A group of points, in one block of channels of in and two of out. */
typedef struct {
    const tdm_conv_direct *conv;
    const float *in, *weights; /* the block of in in the group's first picture; the weights between the blocks */
    float *out;                /* the first point */
    int64_t at[2];             /* what the first point's first tap reads */
    int64_t across;            /* from the coordinate that the first point reads to that of the last; 0: of pictures */
    int64_t next_in, next_out; /* floats from a point to the next */
    bool is_sum;               /* out already has a sum */
    bool clamps;               /* what is below 0 becomes 0; NaN stays */
} group;

/* Adds one tap of points [begin, end). */
INLINE void add_tap(floats_16 sum[GROUP][PAIR], const float *in, int64_t next_in, const float *weights,
                    int64_t out_weights, int64_t begin, int64_t end) {
    for (int64_t c = 0; c < BLOCK; c++) {
        const floats_16 a = load_16(weights + c * BLOCK), b = load_16(weights + c * BLOCK + out_weights);
        UNROLL for (int64_t p = begin; p < end; p++) {
            const floats_16 x = all(in[p * next_in + c]);
            sum[p][0] = multiply_add(x, a, sum[p][0]);
            sum[p][1] = multiply_add(x, b, sum[p][1]);
        }
    }
}

/* The taps of one row of the window. Of a group only the first or the last point may read padding, or all do. */
INLINE void add_taps(floats_16 sum[GROUP][PAIR], const group *g, const float *in, const float *weights, int64_t count,
                     int64_t next_in) {
    const tdm_conv_direct *conv = g->conv;
    for (int64_t k = 0; k < conv->kernel[1]; k++) {
        const int64_t at = g->at[1] + k * conv->step[1], last = at + g->across;
        const bool begins = at >= 0, ends = last < conv->in[1];
        const float *from = in + at * BLOCK, *tap = weights + k * TAP;
        if (begins && ends)
            add_tap(sum, from, next_in, tap, conv->out_weights, 0, count);
        else if (g->across == 0)
            continue;
        else if (ends)
            add_tap(sum, from, next_in, tap, conv->out_weights, 1, count);
        else
            add_tap(sum, from, next_in, tap, conv->out_weights, 0, count - 1);
    }
}

INLINE void add_group(const group *g, int64_t count, int64_t next_in) {
    const tdm_conv_direct *conv = g->conv;
    const int64_t plane = conv->out[0] * conv->out[1] * BLOCK;
    floats_16 sum[GROUP][PAIR];
    UNROLL for (int64_t p = 0; p < count; p++) sum[p][0] = sum[p][1] = (floats_16){0};
    for (int64_t k = 0; k < conv->kernel[0]; k++) {
        const int64_t at = g->at[0] + k * conv->step[0];
        if (at < 0 || at >= conv->in[0]) continue;
        add_taps(sum, g, g->in + at * conv->in[1] * BLOCK, g->weights + k * conv->kernel[1] * TAP, count, next_in);
    }
    UNROLL for (int64_t p = 0; p < count; p++) {
        UNROLL for (int64_t o = 0; o < PAIR; o++) {
            float *out = g->out + p * g->next_out + o * plane;
            const floats_16 whole = g->is_sum ? load_16(out) + sum[p][o] : sum[p][o];
            store(out, g->clamps ? clamp(whole) : whole);
        }
    }
}

/* With constants, the sums stay in registers. */
#define ADD_GROUP(count)                                          \
    static __attribute__((noinline)) void add_##count(group *g) { \
        if (g->next_in == BLOCK)                                  \
            add_group(g, count, BLOCK);                           \
        else                                                      \
            add_group(g, count, g->next_in);                      \
    }
ADD_GROUP(5)
ADD_GROUP(6)
ADD_GROUP(7)
ADD_GROUP(8)
#undef ADD_GROUP

static void add_points(group *g, int64_t count) {
    switch (count) {
    case 5:
        add_5(g);
        break;
    case 6:
        add_6(g);
        break;
    case 7:
        add_7(g);
        break;
    default:
        add_8(g);
    }
}

/* Sets the pair of planes of out to the bias. */
static void fill_pair(float *out, const float *bias, int64_t plane) {
    for (int64_t o = 0; o < PAIR; o++) {
        const floats_16 value = load_16(bias + o * BLOCK);
        for (int64_t i = 0; i < plane; i += BLOCK) store(out + o * plane + i, value);
    }
}

/* From one block of in to a pair of blocks of out, in all pictures. */
static void add_block(group *g, const float *in, float *out, const float *bias) {
    const tdm_conv_direct *conv = g->conv;
    const tdm_conv_direct_group cut = tdm__conv_direct_group(conv);
    const int64_t in_plane = conv->in[0] * conv->in[1] * BLOCK, out_plane = conv->out[0] * conv->out[1] * BLOCK;
    const int64_t pictures = cut.is_across_pictures ? cut.count : 1, points = cut.is_across_pictures ? 1 : cut.count;
    g->next_in = cut.is_across_pictures ? conv->in_blocks * in_plane : conv->stride[1] * BLOCK;
    g->next_out = cut.is_across_pictures ? conv->out_blocks * out_plane : BLOCK;
    g->across = (points - 1) * conv->stride[1];
    for (int64_t n = 0; n < conv->rows; n += pictures) {
        float *planes = out + n * conv->out_blocks * out_plane;
        g->in = in + n * conv->in_blocks * in_plane;
        for (int64_t i = 0; bias != NULL && i < pictures; i++)
            fill_pair(planes + i * conv->out_blocks * out_plane, bias, out_plane);
        for (int64_t p = 0; p < conv->out[0]; p++) {
            g->at[0] = p * conv->stride[0] + conv->first[0];
            for (int64_t q = 0; q < conv->out[1]; q += points) {
                g->at[1] = q * conv->stride[1] + conv->first[1];
                g->out = planes + (p * conv->out[1] + q) * BLOCK;
                add_points(g, cut.count);
            }
        }
    }
}

static void convolve(const tdm_conv_direct *conv, float *out, const float *in, const float *weights, const float *bias,
                     bool clamps) {
    const int64_t in_plane = conv->in[0] * conv->in[1] * BLOCK, out_plane = conv->out[0] * conv->out[1] * BLOCK;
    for (int64_t o = 0; o < conv->out_blocks; o += PAIR) {
        for (int64_t i = 0; i < conv->in_blocks; i++) {
            const float *first = i == 0 && bias != NULL ? bias + o * BLOCK : NULL;
            group g = {.conv = conv, .is_sum = i != 0 || first != NULL, .clamps = clamps && i + 1 == conv->in_blocks};
            g.weights = weights + o * conv->out_weights + i * conv->in_weights;
            add_block(&g, in + i * in_plane, out + o * out_plane, first);
        }
    }
}

/* ---- weights ---- */

/* Neighbouring points of dy in a row, and what one tap reads for them. In floats from the first picture. */
typedef struct {
    int64_t x, dy, count;
} run;

/* Points of which x and dy stay in the first-level cache: whole pictures, or rows of one. */
enum { NEAR_POINTS = 128, MOST_RUNS = NEAR_POINTS };

/* Half a block of channels of x with two blocks of dy. */
typedef struct {
    float *sum;
    const float *x, *dy;
    int64_t next_x, plane, out_weights; /* floats from a point of x to the next; between the blocks of dy, of sum */
    bool is_sum;                        /* sum already has one */
} quarter;

/* sum[i][o] += x[point][i] dy[point][o] over the points of the runs. */
static __attribute__((noinline)) void add_runs(const quarter *part, const run *at, const run *end) {
    const int64_t next_x = part->next_x, plane = part->plane;
    floats_16 s[GROUP][PAIR];
    UNROLL for (int64_t i = 0; i < GROUP; i++) {
        const float *sum = part->sum + i * BLOCK;
        s[i][0] = part->is_sum ? load_16(sum) : (floats_16){0};
        s[i][1] = part->is_sum ? load_16(sum + part->out_weights) : (floats_16){0};
    }
    for (; at < end; at++) {
        const float *from = part->x + at->x, *by = part->dy + at->dy;
        for (int64_t left = at->count; left > 0; left--, from += next_x, by += BLOCK) {
            const floats_16 a = load_16(by), b = load_16(by + plane);
            UNROLL for (int64_t i = 0; i < GROUP; i++) {
                s[i][0] = multiply_add(all(from[i]), a, s[i][0]);
                s[i][1] = multiply_add(all(from[i]), b, s[i][1]);
            }
        }
    }
    UNROLL for (int64_t i = 0; i < GROUP; i++) {
        store(part->sum + i * BLOCK, s[i][0]);
        store(part->sum + i * BLOCK + part->out_weights, s[i][1]);
    }
}

/* Points of dy: of the pictures [picture, pictures) the rows [begin, end). */
typedef struct {
    int64_t picture, pictures, begin, end;
} part;

/* Finds the runs of one tap; returns their number. */
static int64_t find_runs(run runs[MOST_RUNS], const tdm_conv_direct *conv, const part *p, int64_t down,
                         int64_t across) {
    const int64_t x_row = conv->in[1] * BLOCK, y_row = conv->out[1] * BLOCK;
    const int64_t x_picture = conv->in_blocks * conv->in[0] * x_row,
                  y_picture = conv->out_blocks * conv->out[0] * y_row;
    const int64_t left = conv->first[1] + across * conv->step[1];
    int64_t begin = 0, end = conv->out[1], count = 0;
    while (begin < end && begin * conv->stride[1] + left < 0) begin++;
    while (end > begin && (end - 1) * conv->stride[1] + left >= conv->in[1]) end--;
    for (int64_t n = p->picture; n < p->pictures; n++) {
        for (int64_t q = p->begin; q < p->end && begin < end; q++) {
            const int64_t y = q * conv->stride[0] + conv->first[0] + down * conv->step[0];
            if (y < 0 || y >= conv->in[0]) continue;
            runs[count++] = (run){n * x_picture + y * x_row + (begin * conv->stride[1] + left) * BLOCK,
                                  n * y_picture + q * y_row + begin * BLOCK, end - begin};
        }
    }
    return count;
}

static void add_part(const tdm_conv_direct *conv, float *dweights, const float *x, const float *dy, const part *p) {
    const int64_t x_plane = conv->in[0] * conv->in[1] * BLOCK, y_plane = conv->out[0] * conv->out[1] * BLOCK;
    run runs[MOST_RUNS];
    for (int64_t tap = 0; tap < conv->kernel[0] * conv->kernel[1]; tap++) {
        const int64_t count = find_runs(runs, conv, p, tap / conv->kernel[1], tap % conv->kernel[1]);
        for (int64_t o = 0; o < conv->out_blocks; o += PAIR) {
            for (int64_t i = 0; i < conv->in_blocks * BLOCK; i += GROUP) {
                const int64_t block = i / BLOCK, channel = i % BLOCK;
                const quarter at = {
                    .sum = dweights + o * conv->out_weights + block * conv->in_weights + tap * TAP + channel * BLOCK,
                    .x = x + block * x_plane + channel,
                    .dy = dy + o * y_plane,
                    .next_x = conv->stride[1] * BLOCK,
                    .plane = y_plane,
                    .out_weights = conv->out_weights,
                    .is_sum = p->picture != 0 || p->begin != 0,
                };
                add_runs(&at, runs, runs + count);
            }
        }
    }
}

static void add_bias(const tdm_conv_direct *conv, float *dbias, const float *dy) {
    const int64_t plane = conv->out[0] * conv->out[1] * BLOCK;
    for (int64_t o = 0; o < conv->out_blocks; o++) {
        floats_16 sum = {0};
        for (int64_t n = 0; n < conv->rows; n++)
            for (int64_t i = 0; i < plane; i += BLOCK) sum += load_16(dy + (n * conv->out_blocks + o) * plane + i);
        store(dbias + o * BLOCK, sum);
    }
}

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static void find_weights(const tdm_conv_direct *conv, float *dweights, float *dbias, const float *x, const float *dy) {
    const int64_t *out = conv->out, near_rows = NEAR_POINTS / out[1];
    const int64_t cuts = divide_up(out[0], near_rows > 0 ? near_rows : 1), lines = divide_up(out[0], cuts);
    const int64_t near_pictures = NEAR_POINTS / (out[0] * out[1]), pictures = near_pictures > 0 ? near_pictures : 1;
    for (int64_t n = 0; n < conv->rows; n += pictures) {
        for (int64_t line = 0; line < out[0]; line += lines) {
            const part p = {n, smaller(n + pictures, conv->rows), line, smaller(line + lines, out[0])};
            add_part(conv, dweights, x, dy, &p);
        }
    }
    if (dbias != NULL) add_bias(conv, dbias, dy);
}

/* ---- layouts of the weights ---- */

/* r[i][j] = r[j][i]: numbers whose row and column differ in one bit change places, bit after bit. */
INLINE void transpose(floats_16 r[BLOCK]) {
    const ints_16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    UNROLL for (int bit = 1; bit < BLOCK; bit *= 2) {
        const ints_16 is_set = (lane & bit) != 0, second = lane + BLOCK;
        const ints_16 low = (is_set & (second - bit)) | (~is_set & lane);
        const ints_16 high = (is_set & second) | (~is_set & (lane + bit));
        UNROLL for (int i = 0; i < BLOCK; i++) {
            if ((i & bit) != 0) continue;
            const __m512 a = (__m512)r[i], b = (__m512)r[i + bit];
            r[i] = (floats_16)_mm512_permutex2var_ps(a, (__m512i)low, b);
            r[i + bit] = (floats_16)_mm512_permutex2var_ps(a, (__m512i)high, b);
        }
    }
}

/* A pair of blocks in PyTorch's layout and in that of the passes. */
typedef struct {
    float *plain, *packed;
} pair;

/* Neighbours in PyTorch's layout follow one another, whichever axis they lie on: both sides are then read and written
 * in long stretches. */
static pair pair_at(const tdm_conv_direct *conv, const float *plain, const float *packed, int64_t index) {
    const bool in_first = conv->in_plain < conv->out_plain;
    const int64_t length = in_first ? conv->in_blocks : conv->out_blocks, near = index % length, far = index / length;
    const int64_t in = in_first ? near : far, out = in_first ? far : near;
    return (pair){(float *)(uintptr_t)plain + (in * conv->in_plain + out * conv->out_plain) * BLOCK,
                  (float *)(uintptr_t)packed + in * conv->in_weights + out * conv->out_weights};
}

/* A pair of blocks of a window of one point, whose rows are `next` floats apart. */
INLINE void move_square(const tdm_conv_direct *conv, float *to, int64_t next_to, const float *from, int64_t next_from) {
    floats_16 r[BLOCK];
    UNROLL for (int64_t i = 0; i < BLOCK; i++) r[i] = load_16(from + i * next_from);
    if (conv->in_plain == 1) transpose(r);
    UNROLL for (int64_t i = 0; i < BLOCK; i++) store(to + i * next_to, r[i]);
}

static int64_t next_row(const tdm_conv_direct *conv) {
    return conv->in_plain == 1 ? conv->out_plain : conv->in_plain;
}

static void pack(const tdm_conv_direct *conv, float *weights, const float *plain, int64_t begin, int64_t end) {
    const int64_t taps = conv->kernel[0] * conv->kernel[1];
    for (int64_t i = begin; i < end; i++) {
        const pair p = pair_at(conv, plain, weights, i);
        if (taps == 1) {
            move_square(conv, p.packed, BLOCK, p.plain, next_row(conv));
            continue;
        }
        for (int64_t c = 0; c < BLOCK; c++) {
            for (int64_t first = 0; first < taps; first += BLOCK) {
                const int64_t count = smaller(taps - first, BLOCK);
                floats_16 r[BLOCK];
                UNROLL for (int64_t o = 0; o < BLOCK; o++)
                    tdm__prefetch(p.plain + (c + BLOCK) * conv->in_plain + o * conv->out_plain + first, 0);
                UNROLL for (int64_t o = 0; o < BLOCK; o++) r[o] = (floats_16)_mm512_maskz_loadu_ps(
                    (__mmask16)((1u << count) - 1), p.plain + c * conv->in_plain + o * conv->out_plain + first);
                transpose(r);
                for (int64_t t = 0; t < count; t++) store(p.packed + ((first + t) * BLOCK + c) * BLOCK, r[t]);
            }
        }
    }
}

static void unpack(const tdm_conv_direct *conv, float *plain, const float *weights, int64_t begin, int64_t end) {
    const int64_t taps = conv->kernel[0] * conv->kernel[1];
    for (int64_t i = begin; i < end; i++) {
        const pair p = pair_at(conv, plain, weights, i);
        if (taps == 1) {
            move_square(conv, p.plain, next_row(conv), p.packed, BLOCK);
            continue;
        }
        for (int64_t c = 0; c < BLOCK; c++) {
            for (int64_t first = 0; first < taps; first += BLOCK) {
                const int64_t count = smaller(taps - first, BLOCK);
                floats_16 r[BLOCK];
                for (int64_t t = 0; t < count; t++) r[t] = load_16(p.packed + ((first + t) * BLOCK + c) * BLOCK);
                for (int64_t t = count; t < BLOCK; t++) r[t] = (floats_16){0};
                transpose(r);
                UNROLL for (int64_t o = 0; o < BLOCK; o++)
                    _mm512_mask_storeu_ps(p.plain + c * conv->in_plain + o * conv->out_plain + first,
                                          (__mmask16)((1u << count) - 1), (__m512)r[o]);
            }
        }
    }
}

const tdm_conv_direct_lanes TDM_ISA_NAME(tdm__conv_direct_lanes) = {convolve, find_weights, pack, unpack};
#else
const tdm_conv_direct_lanes TDM_ISA_NAME(tdm__conv_direct_lanes) = {NULL, NULL, NULL, NULL};
#endif
