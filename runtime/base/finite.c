#include "runtime/base/finite.h"

#include <stdint.h>

enum { BLOCK = 1024 };

/* Works in blocks, so that the first inner loop has no early exit and is vectorised. In an infinity or a NaN all bits
 * of the exponent are ones. */
#define DEFINE_FIRST(name, bits)                                                            \
    static size_t name(const bits *x, size_t count, bits exponent) {                        \
        for (size_t at = 0; at < count; at += BLOCK) {                                      \
            size_t end = count - at < BLOCK ? count : at + BLOCK;                           \
            bits bad = 0;                                                                   \
            for (size_t i = at; i < end; i++) bad |= (bits)((x[i] & exponent) == exponent); \
            for (size_t i = at; bad != 0; i++) {                                            \
                if ((x[i] & exponent) == exponent) return i;                                \
            }                                                                               \
        }                                                                                   \
        return count;                                                                       \
    }

DEFINE_FIRST(first_16, uint16_t)
DEFINE_FIRST(first_32, uint32_t)
DEFINE_FIRST(first_64, uint64_t)

size_t tdm__first_not_finite(tdm_float_form form, const void *numbers, size_t count) {
    switch (form) {
    case TDM_F16_BITS:
        return first_16(numbers, count, 0x7c00);
    case TDM_BF16_BITS:
        return first_16(numbers, count, 0x7f80);
    case TDM_F32_BITS:
        return first_32(numbers, count, 0x7f800000);
    case TDM_F64_BITS:
        return first_64(numbers, count, UINT64_C(0x7ff0000000000000));
    default:
        return count;
    }
}

size_t tdm__float_bytes(tdm_float_form form) {
    static const size_t bytes[] = {0, 2, 2, 4, 8};
    return bytes[form];
}
