/* Max pooling of LANES neighbouring outputs. maxpool2d_points_lanes.c includes this file for 16, 8 and 4. The rule is
 * that of maxpool2d_lanes.inc.c. */
INLINED INTS NAME(choose)(INTS where, INTS a, INTS b) {
    return (where & a) | (~where & b);
}

/* x: the first point of the first window */
INLINED void NAME(pool)(const strip *s, const float *x, float *y, uint8_t *winner) {
    FLOATS best = (FLOATS){0} - INFINITY;
    INTS won = (INTS){0} + s->first;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->columns; j++) {
            const FLOATS v = NAME(strided)(x + i * s->row_step + j * s->across, s->stride);
            const INTS wins = (INTS)(v > best) | (INTS)(v != v);
            best = (FLOATS)NAME(choose)(wins, (INTS)v, (INTS)best);
            won = NAME(choose)(wins, (INTS){0} + (s->first + (int32_t)i * s->width + (int32_t)j), won);
        }
    }
    memcpy(y, &best, sizeof best);
    if (winner == NULL) return;
    const BYTES index = __builtin_convertvector(won, BYTES);
    memcpy(winner, &index, sizeof index);
}
