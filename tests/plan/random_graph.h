/* Random graphs, the same for a seed on every machine. */
#ifndef TDM_TESTS_RANDOM_GRAPH_H
#define TDM_TESTS_RANDOM_GRAPH_H

#include "tests/plan/plan_support.h"

/* splitmix64 */
static inline uint64_t draw_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline int draw(uint64_t *state, int below) {
    return (int)(draw_bits(state) >> 33) % below;
}
static inline double draw_unit(uint64_t *state) {
    return (double)(draw_bits(state) >> 11) / 9007199254740992.0;
}
static inline bool draw_chance(uint64_t *state, int percent) {
    return draw(state, 100) < percent;
}

typedef enum random_kind {
    RANDOM_ALL,      /* ops that take pictures, and rows behind a flatten; not embedding, which takes whole numbers */
    RANDOM_RESIDUAL, /* conv2d, batchnorm2d, add and relu, with joins */
    RANDOM_SMOOTH,   /* as RANDOM_RESIDUAL, and without kinks: no relu */
    RANDOM_SERIES,   /* ops that take series, and rows behind a flatten or a recurrent layer */
    RANDOM_INPUTS    /* as RANDOM_ALL, of two pictures and a row of features */
} random_kind;

/* A batch of 8x6x6, of 8x6 for series, or of several inputs, `layers` drawn ones, and what joins their loose ends into
 * one output. */
tdm_graph *random_graph(random_kind kind, int layers, uint64_t *state);

/* Patterns of parameters that are not trained: of none, of the first layers, of any layers, or single ones; never of
 * all. They are valid as long as the graph. */
void random_freeze(tdm_texts *out, const tdm_graph *graph, uint64_t *state);

/* What kernels answer, for plan_kernels. */
void random_offers(char *out, size_t bytes, uint64_t *state);

#endif
