/* Models that together have every op, for onnx_test.c: their input, or inputs, and layers. In rows of `whole` numbers
 * these are below 7. */
typedef struct onnx_model {
    const char *name, *input, *layers;
    int width; /* numbers of a sample */
    int whole;
    int one_way; /* tandem writes it, and does not read it: ONNX has no node for one of its layers */
} onnx_model;

static const onnx_model models[] = {
    {"image", "[1, 9, 8]",
     "[{conv2d: {out: 4, kernel: 3, padding: 1}}, relu, {maxpool2d: {kernel: 3, stride: 2, padding: 1, ceil_mode: true}}, "
     "{conv2d: {out: 6, kernel: [2, 3], dilation: [2, 1], padding: same, groups: 2, bias: false}}, relu6, "
     "{maxpool2d: {kernel: 2, stride: 1, dilation: 2}}, flatten, {linear: 5}, {dropout: 0.5}, {linear: {out: 3, bias: false}}]",
     72, 0, 0},
    {"activations", "[6]",
     "[{linear: 8}, {gelu: {approximate: tanh}}, {linear: 8}, gelu, {linear: 8}, silu, {linear: 8}, hardswish, {linear: 8}, "
     "{leaky_relu: 0.2}, {linear: 8}, tanh, sigmoid, identity, batchnorm1d, {linear: 4}, log_softmax]",
     6, 0, 0},
    {"branches", "[4, 6, 6]",
     "[{conv2d: {id: a, out: 4, kernel: 3, padding: 1}}, {batchnorm2d: {id: b}}, {add: {id: c, input: [a, b, input]}}, "
     "{groupnorm: {groups: 2}}, {dropout2d: {id: d, p: 0.5}}, {concat: {input: [c, d], dim: 1}}, {slice: {start: 1, end: 7}}, "
     "{groupnorm: {groups: 3, affine: false}}, {avgpool2d: {kernel: 3, stride: 2, padding: 1}}, "
     "{upsample: {scale: 2, mode: bilinear}}, {avgpool2d: {kernel: 3, stride: 2, ceil_mode: true}}, {layernorm: {normalized_shape: [3, 3]}}, "
     "{upsample: {size: [4, 8], mode: bilinear, align_corners: true}}, {adaptive_maxpool2d: [2, 4]}, {upsample: {scale: 2}}, "
     "{avgpool2d: {kernel: 2, stride: 1, padding: 1, count_include_pad: false}}, {upsample: {size: [4, 6]}}, "
     "{adaptive_avgpool2d: [2, 3]}, flatten, {linear: 3}]",
     144, 0, 0},
    {"series", "[3, 14]",
     "[{conv1d: {out: 4, kernel: 3, stride: 2, padding: 1, groups: 1}}, batchnorm1d, relu, {maxpool1d: {kernel: 2, stride: 1}}, "
     "{conv1d: {out: 6, kernel: 2, padding: same, dilation: 2, groups: 2}}, {adaptive_avgpool1d: 3}, transpose, "
     "{lstm: {hidden: 5, layers: 2, outputs: all}}, {gru: 4}, {linear: 3}]",
     42, 0, 0},
    {"tokens", "[5]",
     "[{embedding: {vocabulary: 7, dim: 6}}, {linear: 4}, {layernorm: {bias: false}}, {linear: {out: 4, bias: false}}, "
     "{gru: {hidden: 3, layers: 2, outputs: all}}, {lstm: 4}, {linear: 2}]",
     5, 1, 0},
    {"inputs", "{image: [2, 4, 4], facts: [5], kinds: [2], output_1: [3]}",
     "[{conv2d: {input: image, out: 3, kernel: 3, padding: 1}}, relu, {flatten: {id: a}}, {linear: {input: facts, out: 4}}, "
     "{relu: {id: b}}, {embedding: {input: kinds, vocabulary: 7, dim: 3}}, {flatten: {id: c}}, "
     "{concat: {input: [a, b, c, output_1]}}, {linear: 3}]",
     42, 1, 0},
    {"sizes", "[2, 10, 7]",
     "[{upsample: {scale: 2.3, mode: bilinear}}, {avgpool2d: 2}, {upsample: {size: [14, 17], mode: bilinear, align_corners: true}}, "
     "{upsample: {size: [7, 6]}}, flatten, {linear: 3}]",
     140, 0, 0},
    {"windows", "[2, 11, 8]",
     "[{maxpool2d: {kernel: 2, stride: 3, padding: 1, dilation: 3, ceil_mode: true}}, flatten, {linear: 3}]", 176, 0,
     0},
    {"points", "[2, 10, 7]", "[{upsample: {size: [14, 11]}}, {upsample: 1.4}, flatten, {linear: 3}]", 140, 0, 1},
};
enum { MODELS = sizeof models / sizeof models[0] };
