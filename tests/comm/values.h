/* What ranks put into their spans, and what must come out. */
#ifndef TEST_COMM_VALUES_H
#define TEST_COMM_VALUES_H

#include <stdbool.h>

#include <tandem/comm.h>

/* Element i of rank r, so that reductions over all ranks are formulas. */
double input(int r, size_t i, tdm_reduce_op op);
double expected(int world, size_t i, tdm_reduce_op op);
/* Numbers of very different size, so that another order of the sum gives other bits. */
float rough(int r, size_t i);
/* Their sum as the canonical tree, of `ranks` ranks from `first` on. */
float tree_sum(int first, int ranks, size_t i);
void put(void *data, size_t i, tdm_dtype dtype, double value);
double get(const void *data, size_t i, tdm_dtype dtype);
/* The first element i that is not that of element first + i of all ranks, or `count`. */
size_t first_wrong_from(const void *data, size_t first, size_t count, tdm_dtype dtype, int world, tdm_reduce_op op);
size_t first_wrong(const void *data, size_t count, tdm_dtype dtype, int world, tdm_reduce_op op);

void *buffer(size_t bytes);

/* Values that say whose they are: of rank r. */
void fill(int32_t *data, int r, size_t count);
size_t wrong_marks(const int32_t *data, int r, size_t count);
tdm_span i32(void *data, size_t count);

/* Between hosts a call is messages to all others, which take long: there each call is tried in memory of one kind, and
 * large ones of one type and one operator. */
#ifdef HOSTS_BACKEND
enum { BETWEEN_HOSTS = 1 };
#else
enum { BETWEEN_HOSTS = 0 };
#endif

static inline bool is_tried(size_t count, int dtype, int op) {
    const bool is_float = dtype == TDM_DTYPE_F32, is_sum = op == TDM_REDUCE_SUM;
    return count <= 10000 || (BETWEEN_HOSTS ? is_float && is_sum : is_float || is_sum);
}

#endif
