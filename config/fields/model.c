/* Keys of the model and of every layer. */
#include "config/fields/fields.h"

static const char *const builtin_names[] = {
#define TDM_BUILTIN(name) #name,
#include "config/builtins.def"
#undef TDM_BUILTIN
    NULL,
};
const tdm_field tdm__model_rows[] = {
    {FIELD(INTS, tdm_model_head, input, "null"), RANGE(1, 2147483647), ITEMS(1, 5), FLAGS(NULLABLE),
     HELP("shape of one sample without the batch: [channels, height, width], or a number of features",
          "单个样本的形状（不含批次维）：[通道, 高, 宽]，或特征数")},
    {FIELD(SHAPES, tdm_model_head, inputs, "null"), RANGE(1, 2147483647), ITEMS(1, TDM_SHAPES_MAX), FLAGS(NULLABLE),
     HELP("several inputs instead of `input`, each with a name for the `input` of layers and a shape: {image: [3, 32, "
          "32], facts: 7}; a sample is one row, their numbers in this order",
          "代替 input 的多个输入，各有供层的 input 引用的名字和形状：{image: [3, 32, 32], facts: 7}；"
          "一个样本是一行，按此顺序排列各输入的数值")},
    {FIELD(ENUM, tdm_model_head, builtin, "none"), .names = builtin_names, FLAGS(NULLABLE),
     HELP(
         "a network of torchvision (or the classic lenet5), with its names of parameters and first weights, instead of "
         "layers",
         "使用 torchvision 的网络（或经典的 lenet5）代替 layers，参数名与初始权重相同")},
    {FIELD(INT, tdm_model_head, classes, "null"), RANGE(2, 16777216), FLAGS(NULLABLE),
     HELP("builtin: number of outputs; null: 1000, and 10 for lenet5",
          "builtin：输出个数；null 为 1000，lenet5 为 10")},
    {FIELD(BOOL, tdm_model_head, small_input, "false"),
     HELP("builtin resnet: begins with a 3x3 convolution of stride 1 and no pooling, for pictures such as CIFAR's",
          "builtin 的 resnet：以步幅 1 的 3x3 卷积开头且不池化，适合 CIFAR 一类小图")},
    {FIELD(BOOL, tdm_model_head, zero_init_residual, "false"),
     HELP("builtin resnet: the last batch norm of each block begins with weight 0, as torchvision's option",
          "builtin 的 resnet：每个残差块最后的批归一化 weight 初值为 0，同 torchvision 的选项")},
    {FIELD(PATH, tdm_model_head, weights, "null"), FLAGS(NULLABLE),
     HELP("a checkpoint, or a .safetensors, .pt, .pth or .onnx file, with the weights to start from",
          "作为起点的权重：检查点，或 .safetensors、.pt、.pth、.onnx 文件")},
    {FIELD_IN(BOOL, tdm_model_head, match, strict, "true"),
     HELP("refuse weights unless every tensor of the file and of the model has its match",
          "文件与模型的张量必须一一对应，否则拒绝")},
    {FIELD_IN(TEXTS, tdm_model_head, match, skip, "null"), ITEMS(0, TDM_LIST_MAX), FLAGS(NULLABLE),
     HELP("patterns of tensors, by their names in the model, that keep their initial values, such as [fc.*]",
          "保留初始值、不从文件读取的张量名模式（模型中的名字），例如 [fc.*]")},
    {FIELD_IN(MAP, tdm_model_head, match, rename, "null"), ITEMS(0, TDM_LIST_MAX), FLAGS(NULLABLE),
     HELP("prefixes of names in the file and what they become; the first that fits is replaced",
          "文件中张量名的前缀及其替换；取第一个符合的前缀")},
    {FIELD(TEXTS, tdm_model_head, freeze, "null"), ITEMS(0, TDM_LIST_MAX), FLAGS(NULLABLE),
     HELP("patterns of parameters that are not trained, such as [layer1.*]; a batch norm whose parameters are all "
          "frozen uses its running statistics and leaves them as they are",
          "不训练的参数名模式，例如 [layer1.*]；参数全部冻结的批归一化使用滑动统计量且不更新它们")},
    {0},
};

const tdm_field tdm__layer_rows[] = {
    {FIELD(TEXT, tdm_layer_head, name, "null"), .flags = TDM_FIELD_NULLABLE,
     HELP("prefix of the layer's tensors in checkpoints; null: its index in the list, as in torch.nn.Sequential",
          "检查点中张量名的前缀；null 表示列表中的序号，同 torch.nn.Sequential")},
    {FIELD(TEXT, tdm_layer_head, id, "null"), .flags = TDM_FIELD_NULLABLE,
     HELP("name of the layer's output, for `input` of later layers", "输出的名字，供后面层的 input 引用")},
    {FIELD(PATHS, tdm_layer_head, input, "null"), ITEMS(1, 8), .flags = TDM_FIELD_NULLABLE,
     HELP(
         "id of the output that the layer takes, or a list of ids; null: the layer before; `input` is the model's input, "
         "model.inputs have their names",
         "所取输出的 id，可为一个或列表；null 表示上一层；input 表示模型输入，model.inputs 用各自的名字")},
    {FIELD(INT, tdm_layer_head, stage, "null"), RANGE(0, 63), .flags = TDM_FIELD_NULLABLE,
     HELP("which of parallel.stages the layer runs in, from 0; null: that of the layer before",
          "运行在 parallel.stages 的哪一段，从 0 起；null 表示与上一层相同")},
    {0},
};
