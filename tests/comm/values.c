/* See values.h. */
#include "tests/comm/values.h"

#include <stdlib.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"

/* ---- values whose reductions are formulas ---- */

double input(int r, size_t i, tdm_reduce_op op) {
    return op == TDM_REDUCE_PRODUCT ? (double)(1 + ((size_t)r + i) % 2) : (double)(r + 1) + (double)(i % 7);
}

float rough(int r, size_t i) {
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)r * 40503u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    float scale = (float)(1u << (x % 20));
    return ((float)(x >> 8) / 16777216.0f - 0.5f) * scale;
}

float tree_sum(int first, int ranks, size_t i) {
    if (ranks == 1) return rough(first, i);
    int left = 1;
    while (left * 2 < ranks) left *= 2;
    return tree_sum(first, left, i) + tree_sum(first + left, ranks - left, i);
}

static double expected_bits(int world, size_t i, tdm_reduce_op op) {
    int bits = (int)input(0, i, op);
    for (int r = 1; r < world; r++) {
        const int next = (int)input(r, i, op);
        bits = op == TDM_REDUCE_BAND ? bits & next : op == TDM_REDUCE_BOR ? bits | next : bits ^ next;
    }
    return bits;
}

double expected(int world, size_t i, tdm_reduce_op op) {
    double low = 1 + (double)(i % 7);
    int twos = (int)(((size_t)world + i % 2) / 2);
    switch (op) {
    case TDM_REDUCE_SUM:
        return world * (double)(i % 7) + world * (world + 1) / 2.0;
    case TDM_REDUCE_PRODUCT:
        return (double)(1 << twos);
    case TDM_REDUCE_MIN:
        return low;
    case TDM_REDUCE_MAX:
        return low + world - 1;
    case TDM_REDUCE_AVG:
        return expected(world, i, TDM_REDUCE_SUM) / world;
    default:
        return expected_bits(world, i, op);
    }
}

void put(void *data, size_t i, tdm_dtype dtype, double value) {
    switch (dtype) {
    case TDM_DTYPE_F32:
        ((float *)data)[i] = (float)value;
        break;
    case TDM_DTYPE_F64:
        ((double *)data)[i] = value;
        break;
    case TDM_DTYPE_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case TDM_DTYPE_I64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case TDM_DTYPE_BF16:
        ((uint16_t *)data)[i] = tdm__bf16_of((float)value);
        break;
    case TDM_DTYPE_F16:
        ((uint16_t *)data)[i] = tdm__f16_of((float)value);
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)(int)value;
    }
}

double get(const void *data, size_t i, tdm_dtype dtype) {
    switch (dtype) {
    case TDM_DTYPE_F32:
        return (double)((const float *)data)[i];
    case TDM_DTYPE_F64:
        return ((const double *)data)[i];
    case TDM_DTYPE_I32:
        return (double)((const int32_t *)data)[i];
    case TDM_DTYPE_I64:
        return (double)((const int64_t *)data)[i];
    case TDM_DTYPE_BF16:
        return (double)tdm__bf16_float(((const uint16_t *)data)[i]);
    case TDM_DTYPE_F16:
        return (double)tdm__f16_float(((const uint16_t *)data)[i]);
    default:
        return (double)((const uint8_t *)data)[i];
    }
}

size_t first_wrong_from(const void *data, size_t first, size_t count, tdm_dtype dtype, int world, tdm_reduce_op op) {
    for (size_t i = 0; i < count; i++) {
        uint64_t wanted;
        put(&wanted, 0, dtype, expected(world, first + i, op));
        if (get(data, i, dtype) != get(&wanted, 0, dtype)) return i;
    }
    return count;
}

size_t first_wrong(const void *data, size_t count, tdm_dtype dtype, int world, tdm_reduce_op op) {
    return first_wrong_from(data, 0, count, dtype, world, op);
}

void *buffer(size_t bytes) {
    return aligned_alloc(64, (bytes + 127) / 64 * 64);
}

/* ---- values that say whose they are ---- */

static int32_t mark(int r, size_t i) {
    return (int32_t)(r * 1000003) ^ (int32_t)i;
}

void fill(int32_t *data, int r, size_t count) {
    for (size_t i = 0; i < count; i++) data[i] = mark(r, i);
}

size_t wrong_marks(const int32_t *data, int r, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += data[i] != mark(r, i);
    return wrong;
}

tdm_span i32(void *data, size_t count) {
    return (tdm_span){data, count, TDM_DTYPE_I32};
}
