/* Networks by name, see builtin.h. Shapes and first weights are those of torchvision 0.2x: ResNet (He et al. 2015,
 * v1.5: the stride of a bottleneck is in its 3x3 convolution), VGG (Simonyan and Zisserman 2014), MobileNetV2 (Sandler
 * et al. 2018). LeNet-5 (LeCun et al. 1998), which torchvision does not have, has relu and max pooling.
 *
 * The order of the layers is that of torchvision's modules(): first weights are drawn in it. */
#include "config/builtin.h"

#include <stdio.h>

enum { LEVELS = 4 };

typedef struct resnet {
    int blocks[LEVELS];
    bool has_bottlenecks;
} resnet;

/* ---- residual networks ---- */

typedef struct block {
    const tdm_model_head *model;
    char name[24], before[24]; /* "layer2.0"; the id of its input */
    int width, stride;
    bool has_bottleneck, has_shortcut;
} block;

static void put_conv(tdm_text *out, const char *name, int width, int kernel, int stride, const char *input) {
    tdm__text_printf(
        out, "- conv2d: {name: %s, out: %d, kernel: %d, stride: %d, padding: %d, bias: false, init: kaiming_fan_out",
        name, width, kernel, stride, kernel / 2);
    if (input != NULL) tdm__text_printf(out, ", input: %s", input);
    tdm__text_puts(out, "}\n");
}

/* The k-th convolution of a block, with its batch norm; the last has no relu yet. */
static void put_step(const block *b, int k, int width, int kernel, int stride, bool is_last, tdm_text *out) {
    char name[48];
    snprintf(name, sizeof(name), "%s.conv%d", b->name, k);
    put_conv(out, name, width, kernel, stride, k == 1 ? b->before : NULL);
    tdm__text_printf(out, "- batchnorm2d: {name: %s.bn%d", b->name, k);
    if (is_last) tdm__text_printf(out, ", id: %s.main%s", b->name, b->model->zero_init_residual ? ", init: zeros" : "");
    tdm__text_puts(out, "}\n");
    if (!is_last) tdm__text_puts(out, "- relu\n");
}

static void put_block(const block *b, tdm_text *out) {
    const int wide = b->has_bottleneck ? 4 * b->width : b->width;
    if (b->has_bottleneck) {
        put_step(b, 1, b->width, 1, 1, false, out);
        put_step(b, 2, b->width, 3, b->stride, false, out);
        put_step(b, 3, wide, 1, 1, true, out);
    } else {
        put_step(b, 1, b->width, 3, b->stride, false, out);
        put_step(b, 2, b->width, 3, 1, true, out);
    }
    if (b->has_shortcut) {
        char name[48];
        snprintf(name, sizeof(name), "%s.downsample.0", b->name);
        put_conv(out, name, wide, 1, b->stride, b->before);
        tdm__text_printf(out, "- batchnorm2d: {name: %s.downsample.1, id: %s.shortcut}\n", b->name, b->name);
    }
    tdm__text_printf(out, "- add: {input: [%s.main, %s%s]}\n- relu: {id: %s}\n", b->name,
                     b->has_shortcut ? b->name : b->before, b->has_shortcut ? ".shortcut" : "", b->name);
}

static void put_resnet(const tdm_model_head *model, const resnet *net, tdm_text *out) {
    block b = {.model = model, .before = "stem", .has_bottleneck = net->has_bottlenecks};
    put_conv(out, "conv1", 64, model->small_input ? 3 : 7, model->small_input ? 1 : 2, NULL);
    tdm__text_printf(out, "- batchnorm2d: {name: bn1}\n- relu: {id: %s}\n", model->small_input ? "stem" : "relu1");
    if (!model->small_input) tdm__text_puts(out, "- maxpool2d: {kernel: 3, stride: 2, padding: 1, id: stem}\n");
    for (int level = 0; level < LEVELS; level++) {
        b.width = 64 << level;
        for (int k = 0; k < net->blocks[level]; k++) {
            b.stride = k == 0 && level > 0 ? 2 : 1;
            b.has_shortcut = k == 0 && (level > 0 || net->has_bottlenecks);
            snprintf(b.name, sizeof(b.name), "layer%d.%d", level + 1, k);
            put_block(&b, out);
            snprintf(b.before, sizeof(b.before), "layer%d.%d", level + 1, k);
        }
    }
    tdm__text_puts(out, "- adaptive_avgpool2d: 1\n- flatten\n");
}

/* ---- plain networks ---- */

static void put_vgg11(tdm_text *out) {
    static const int widths[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}; /* 0: pooling */
    int at = 0;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (widths[i] == 0) {
            tdm__text_puts(out, "- maxpool2d: 2\n");
            at++;
            continue;
        }
        tdm__text_printf(
            out, "- conv2d: {name: features.%d, out: %d, kernel: 3, padding: 1, init: kaiming_fan_out}\n- relu\n", at,
            widths[i]);
        at += 2;
    }
    tdm__text_puts(out, "- adaptive_avgpool2d: 7\n- flatten\n");
    for (int i = 0; i < 2; i++)
        tdm__text_printf(out, "- linear: {name: classifier.%d, out: 4096, init_std: 0.01}\n- relu\n- dropout: 0.5\n",
                         3 * i);
}

/* ---- MobileNetV2 (Sandler et al. 2018): inverted residuals ---- */

static void put_unit(tdm_text *out, const char *name, int width, int kernel, int stride, int groups,
                     const char *input) {
    tdm__text_printf(
        out, "- conv2d: {name: %s.0, out: %d, kernel: %d, stride: %d, padding: %d, bias: false, init: kaiming_fan_out",
        name, width, kernel, stride, kernel / 2);
    if (groups > 1) tdm__text_printf(out, ", groups: %d", groups);
    if (input != NULL) tdm__text_printf(out, ", input: %s", input);
    tdm__text_printf(out, "}\n- batchnorm2d: {name: %s.1}\n- relu6\n", name);
}

/* A wide depthwise convolution between two narrow ends. `in` and `out`: channels. */
static void put_inverted(tdm_text *text, int index, int in, int out, int expand, int stride) {
    char name[32];
    const int wide = in * expand;
    const bool adds = stride == 1 && in == out;
    int part = 0;
    if (expand != 1) {
        snprintf(name, sizeof(name), "features.%d.conv.%d", index, part++);
        put_unit(text, name, wide, 1, 1, 1, NULL);
    }
    snprintf(name, sizeof(name), "features.%d.conv.%d", index, part++);
    put_unit(text, name, wide, 3, stride, wide, NULL);
    tdm__text_printf(text,
                     "- conv2d: {name: features.%d.conv.%d, out: %d, kernel: 1, bias: false, init: kaiming_fan_out}\n",
                     index, part, out);
    tdm__text_printf(text, "- batchnorm2d: {name: features.%d.conv.%d, id: f%d%s}\n", index, part + 1, index,
                     adds ? ".main" : "");
    if (adds) tdm__text_printf(text, "- add: {input: [f%d.main, f%d], id: f%d}\n", index, index - 1, index);
}

static void put_mobilenet_v2(tdm_text *out) {
    static const struct {
        int expand, width, count, stride;
    } settings[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int index = 1, in = 32;
    put_unit(out, "features.0", in, 3, 2, 1, NULL);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        for (int k = 0; k < settings[i].count; k++, index++) {
            put_inverted(out, index, in, settings[i].width, settings[i].expand, k == 0 ? settings[i].stride : 1);
            in = settings[i].width;
        }
    }
    put_unit(out, "features.18", 1280, 1, 1, 1, NULL);
    tdm__text_puts(out, "- adaptive_avgpool2d: 1\n- flatten\n- dropout: 0.2\n");
}

static void put_lenet5(tdm_text *out) {
    tdm__text_puts(out, "- conv2d: {name: conv1, out: 6, kernel: 5, padding: 2}\n- relu\n- maxpool2d: 2\n"
                        "- conv2d: {name: conv2, out: 16, kernel: 5}\n- relu\n- maxpool2d: 2\n- flatten\n"
                        "- linear: {name: fc1, out: 120}\n- relu\n- linear: {name: fc2, out: 84}\n- relu\n");
}

void tdm__builtin_print(const tdm_model_head *model, tdm_text *out) {
    static const resnet resnets[] = {[TDM_BUILTIN_resnet18] = {{2, 2, 2, 2}, false},
                                     [TDM_BUILTIN_resnet34] = {{3, 4, 6, 3}, false},
                                     [TDM_BUILTIN_resnet50] = {{3, 4, 6, 3}, true}};
    static const struct {
        const char *last; /* the last layer */
        void (*put)(tdm_text *out);
        int classes;
        bool is_normal; /* its first weights */
    } plain[] = {[TDM_BUILTIN_mobilenet_v2] = {"classifier.1", put_mobilenet_v2, 1000, true},
                 [TDM_BUILTIN_vgg11] = {"classifier.6", put_vgg11, 1000, true},
                 [TDM_BUILTIN_lenet5] = {"fc3", put_lenet5, 10, false}};
    const bool is_resnet = model->builtin <= TDM_BUILTIN_resnet50;
    const long long own = is_resnet ? 1000 : plain[model->builtin].classes;
    const long long classes = model->classes != TDM_INT_NULL ? model->classes : own;
    if (is_resnet)
        put_resnet(model, &resnets[model->builtin], out);
    else
        plain[model->builtin].put(out);
    tdm__text_printf(out, "- linear: {name: %s, out: %lld%s}\n", is_resnet ? "fc" : plain[model->builtin].last, classes,
                     !is_resnet && plain[model->builtin].is_normal ? ", init_std: 0.01" : "");
}
