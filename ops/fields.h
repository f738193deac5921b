/* Rows of attributes that several layers have, for their tables (base/field/field_rows.h). */
#ifndef TDM_OPS_FIELDS_H
#define TDM_OPS_FIELDS_H

#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

#define OUT_CHANNELS(struct_)                                                           \
    FIELD(INT, struct_, out, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN), \
        HELP("channels of the output", "输出通道数")
#define IN_CHANNELS(struct_)                                                           \
    FIELD(INT, struct_, in, "null"), RANGE(1, TDM_MAX_FEATURES), FLAGS(NULLABLE),      \
        HELP("channels of the input; taken from the previous layer, checked if given", \
             "输入通道数；可由上一层得知，写出则检查")
#define CONV_GROUPS(struct_)                                      \
    FIELD(INT, struct_, groups, "1"), RANGE(1, TDM_MAX_FEATURES), \
        HELP("groups of channels that are convolved separately", "互不相连的通道分组数")
#define LEARNED_BIAS(struct_) \
    FIELD(BOOL, struct_, bias, "true"), HELP("whether a learnable bias is added", "是否加上可学习的偏置")
#define NORM_EPS(struct_)                                               \
    FIELD(FLOAT, struct_, eps, "1.0e-5"), RANGE(0, 1), FLAGS(OPEN_MIN), \
        HELP("added to the variance", "加到方差上的小量")

#endif
