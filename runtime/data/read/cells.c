/* Numbers of data files, see cells.h. */
#include "runtime/data/read/cells.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/f16.h"

bool tdm__cell_type_is(const tdm_cell_type *type, const char *types) {
    char name[24];
    if (type->order == '|' && type->bytes != 1) return false;
    snprintf(name, sizeof(name), "%c%zu", type->kind, type->bytes);
    return strlen(name) == 2 && strstr(types, name) != NULL;
}

/* The bits of the number, in the low bytes. */
static uint64_t bits_at(const tdm_cell_type *type, const unsigned char *at) {
    uint64_t bits = 0;
    for (size_t i = 0; i < type->bytes; i++) {
        const size_t from = type->order == '>' ? type->bytes - 1 - i : i;
        bits |= (uint64_t)at[from] << 8 * i;
    }
    return bits;
}

int64_t tdm__cell_integer(const tdm_cell_type *type, const unsigned char *at) {
    const uint64_t bits = bits_at(type, at);
    const unsigned unused = 64 - 8 * (unsigned)type->bytes;
    if (type->kind == 'b') return bits != 0;
    if (type->kind == 'i') return (int64_t)(bits << unused) >> unused;
    return bits > INT64_MAX ? -1 : (int64_t)bits;
}

static float float_at(const tdm_cell_type *type, const unsigned char *at) {
    const uint64_t bits = bits_at(type, at);
    const uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    if (type->kind == 'u') return (float)bits;
    if (type->kind != 'f') return (float)tdm__cell_integer(type, at);
    if (type->bytes == 2) return tdm__f16_float((uint16_t)bits);
    memcpy(&narrow, &low, sizeof(narrow));
    memcpy(&wide, &bits, sizeof(wide));
    return type->bytes == sizeof(narrow) ? narrow : (float)wide;
}

void tdm__cells_to_floats(const tdm_cell_type *type, const unsigned char *from, size_t count, float *to) {
    for (size_t i = 0; i < count; i++) to[i] = float_at(type, from + i * type->bytes);
}
