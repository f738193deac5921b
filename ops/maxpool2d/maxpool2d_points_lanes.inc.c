/* Max pooling of LANES neighbouring outputs. maxpool2d_points_lanes.c includes this file for 16, 8 and 4. The rule is
 * that of maxpool2d_lanes.inc.c. */
INLINED INTS NAME(choose)(INTS where, INTS a, INTS b) {
    return (where & a) | (~where & b);
}

typedef struct {
    FLOATS value;
    INTS index;
} NAME(best);

/* `a` comes before `b` in the window. */
INLINED NAME(best) NAME(better)(NAME(best) a, NAME(best) b) {
    const INTS wins = (INTS)(b.value > a.value) | (INTS)(b.value != b.value);
    return (NAME(best)){(FLOATS)NAME(choose)(wins, (INTS)b.value, (INTS)a.value), NAME(choose)(wins, b.index, a.index)};
}

/* x: the first point of the first window */
INLINED void NAME(pool)(const strip *s, const float *x, float *y, uint8_t *winner) {
    NAME(best) best = {{0}, {0}};
    for (int64_t i = 0; i < s->rows; i++) {
        const float *from = x + i * s->row_step;
        const int32_t index = s->first + (int32_t)i * s->width;
        NAME(best) row = {NAME(strided)(from, s->stride), (INTS){0} + index};
        for (int64_t j = 1; j < s->columns; j++)
            row = NAME(better)(
                row, (NAME(best)){NAME(strided)(from + j * s->across, s->stride), (INTS){0} + (index + (int32_t)j)});
        best = i == 0 ? row : NAME(better)(best, row);
    }
    memcpy(y, &best.value, sizeof best.value);
    if (winner == NULL) return;
    const BYTES index = __builtin_convertvector(best.index, BYTES);
    memcpy(winner, &index, sizeof index);
}
