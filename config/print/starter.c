/* `tandem init`: starter files with comments in two languages. Each line has YAML, a comment, or both. A comment on a
 * line of its own begins with `##`, so that it is still a comment after an editor's "uncomment". Alternatives for a
 * value are in the comment after it. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"

typedef struct starter_line {
    const char *yaml, *en, *zh;
} starter_line;

#define HEAD                                                                                                \
    {"", "`tandem train FILE` runs it, `tandem check FILE` checks it, `tandem explain KEY` explains a key", \
     "`tandem train 文件` 运行，`tandem check 文件` 检查，`tandem explain 键` 查看说明"},                   \
        {"", "override values on the command line: `tandem train FILE optimizer.lr=0.01`",                  \
         "可在命令行修改：`tandem train 文件 optimizer.lr=0.01`"},                                          \
    {                                                                                                       \
        "tandem: 1", "version of this format", "本格式的版本"                                         \
    }

static const starter_line cifar[] = {
    HEAD,
    {"name: cifar-convnet", "names the run directory", "用于运行目录的名字"},
    {"seed: 42", "initial weights, order of samples, dropout", "初始权重、样本顺序、dropout"},
    {"deterministic: true", "two runs are equal to the bit", "两次运行逐位相同"},
    {"model:", NULL, NULL},
    {"  input: [3, 32, 32]", "channels, height, width", "通道、高、宽"},
    {"  layers:", "`name` is the prefix in checkpoints, as in PyTorch", "name 是检查点中的前缀，与 PyTorch 一致"},
    {"    - conv2d: {name: features.0, out: 64, kernel: 3, padding: 1}", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - maxpool2d: 2", NULL, NULL},
    {"    - conv2d: {name: features.3, out: 128, kernel: 3, padding: 1}", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - maxpool2d: 2", NULL, NULL},
    {"    - flatten", "128 x 8 x 8 = 8192", "128 x 8 x 8 = 8192"},
    {"    - linear: {name: classifier.0, out: 512}", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - linear: {name: classifier.2, out: 10}", NULL, NULL},
    {"data:", "rendered digits, which need no download; the form after `or` reads CIFAR-10",
     "绘制的数字，无需下载即可运行；「或」之后的写法读取 CIFAR-10"},
    {"  train: {format: glyphs, samples: 5000, range: [0, 4000]}",
     "or {format: cifar10, path: data/cifar-10-batches-bin}", "或 {format: cifar10, path: data/cifar-10-batches-bin}"},
    {"  eval: {format: glyphs, samples: 5000, range: [4000, 5000]}",
     "or {format: cifar10, path: data/cifar-10-batches-bin}", "或 {format: cifar10, path: data/cifar-10-batches-bin}"},
    {"  transform: [to_float, {normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}}]", NULL, NULL},
    {"  shuffle: true", "a new order every epoch", "每轮重新打乱"},
    {"  workers: 2", "loader threads; they never change the numbers", "加载线程数；不影响数值"},
    {"loss: cross_entropy", NULL, NULL},
    {"optimizer: {type: adam, lr: 1.0e-3}", "adam, adamw, sgd, rmsprop or lars", "adam、adamw、sgd、rmsprop 或 lars"},
    {"schedule: {type: constant}", "constant, step, multistep, cosine, onecycle, linear, plateau, ...",
     "constant、step、multistep、cosine、onecycle、linear、plateau 等"},
    {"train:", NULL, NULL},
    {"  epochs: 2", "or steps: N", "或 steps: N"},
    {"  batch: {per_device: 32}", "or {global: 64}", "或 {global: 64}"},
    {"parallel:", NULL, NULL},
    {"  mode: ddp", "single; dp: as DataParallel; ddp: as DistributedDataParallel",
     "single；dp：同 DataParallel；ddp：同 DistributedDataParallel"},
    {"  device: auto", "a usable GPU, else the CPU", "有可用 GPU 时用 GPU，否则用 CPU"},
    {"  device_ids: [0, 1]", "on the CPU: virtual devices", "CPU 上为虚拟设备"},
    {"eval: {every: 1 epoch}", NULL, NULL},
    {"checkpoint: {every: 1 epoch, keep_last: 3, resume: auto}", NULL, NULL},
    {"run: {dir: \"runs/${name}/${start_time}\"}", NULL, NULL},
    {NULL, NULL, NULL},
};

static const starter_line mnist[] = {
    HEAD,
    {"name: mnist-cnn", "names the run directory", "用于运行目录的名字"},
    {"seed: 42", "initial weights, order of samples, dropout", "初始权重、样本顺序、dropout"},
    {"model:", NULL, NULL},
    {"  input: [1, 28, 28]", "channels, height, width", "通道、高、宽"},
    {"  layers:", NULL, NULL},
    {"    - conv2d: {out: 16, kernel: 3, padding: 1}", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - maxpool2d: 2", NULL, NULL},
    {"    - conv2d: {out: 32, kernel: 3, padding: 1}", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - maxpool2d: 2", NULL, NULL},
    {"    - flatten", NULL, NULL},
    {"    - linear: 128", NULL, NULL},
    {"    - relu", NULL, NULL},
    {"    - dropout: 0.5", NULL, NULL},
    {"    - linear: 10", NULL, NULL},
    {"data:", "rendered digits, which need no download; the form after `or` reads MNIST's files",
     "绘制的数字，无需下载即可运行；「或」之后的写法读取 MNIST 文件"},
    {"  train: {format: glyphs, samples: 6000, range: [0, 5000]}",
     "or {format: idx, images: data/train-images-idx3-ubyte.gz, labels: data/train-labels-idx1-ubyte.gz}",
     "或 {format: idx, images: data/train-images-idx3-ubyte.gz, labels: data/train-labels-idx1-ubyte.gz}"},
    {"  eval: {format: glyphs, samples: 6000, range: [5000, 6000]}",
     "or {format: idx, images: data/t10k-images-idx3-ubyte.gz, labels: data/t10k-labels-idx1-ubyte.gz}",
     "或 {format: idx, images: data/t10k-images-idx3-ubyte.gz, labels: data/t10k-labels-idx1-ubyte.gz}"},
    {"  transform: [to_float, {normalize: {mean: [0.1307], std: [0.3081]}}]", NULL, NULL},
    {"loss: cross_entropy", NULL, NULL},
    {"optimizer: {type: adam, lr: 1.0e-3}", "adam, adamw, sgd, rmsprop or lars", "adam、adamw、sgd、rmsprop 或 lars"},
    {"train:", NULL, NULL},
    {"  epochs: 3", "or steps: N", "或 steps: N"},
    {"  batch: {global: 64}", "of all devices together; or {per_device: 32}", "所有设备合计；或 {per_device: 32}"},
    {"parallel:", NULL, NULL},
    {"  mode: dp", "single, dp or ddp", "single、dp 或 ddp"},
    {"  device_ids: [0, 1]", "on the CPU: virtual devices", "CPU 上为虚拟设备"},
    {NULL, NULL, NULL},
};

static const starter_line toy[] = {
    HEAD,
    {"name: toy-mp", "names the run directory", "用于运行目录的名字"},
    {"seed: 0", NULL, NULL},
    {"", "Linear 10-10 on one device, ReLU, Linear 10-5 on another: each replica is split into two stages",
     "Linear 10-10 在一个设备上，ReLU 与 Linear 10-5 在另一个上：每个副本切分为两段"},
    {"model:", NULL, NULL},
    {"  input: 10", "a number of features", "特征数"},
    {"  layers:", NULL, NULL},
    {"    - linear: {name: net1, out: 10, stage: 0}", NULL, NULL},
    {"    - relu", "in the stage of the layer before", "与上一层同段"},
    {"    - linear: {name: net2, out: 5, stage: 1}", NULL, NULL},
    {"data:", NULL, NULL},
    {"  train: {format: synthetic, samples: 2000}", "randn inputs and targets, as torch draws them",
     "与 torch 相同的 randn 输入与目标"},
    {"loss: mse", NULL, NULL},
    {"optimizer: {type: sgd, lr: 1.0e-3}", NULL, NULL},
    {"train:", NULL, NULL},
    {"  steps: 100", NULL, NULL},
    {"  batch: {per_device: 20}", "samples of a replica", "每个副本的样本数"},
    {"  accumulate: 4", "micro-batches that keep both stages busy", "微批数，使两段同时工作"},
    {"parallel:", NULL, NULL},
    {"  mode: ddp", "two replicas of two stages each", "两个副本，各两段"},
    {"  stages: 2", NULL, NULL},
    {"  device_ids: [0, 1, 2, 3]", "the first two are replica 0's; on the CPU: virtual devices",
     "前两个属于副本 0；CPU 上为虚拟设备"},
    {NULL, NULL, NULL},
};

static const starter_line burnin[] = {
    {"", "`tandem burnin FILE` runs it, `tandem check FILE` checks it, `tandem explain KEY` explains a key",
     "`tandem burnin 文件` 运行，`tandem check 文件` 检查，`tandem explain 键` 查看说明"},
    {"", "override values on the command line: `tandem burnin FILE 'parallel.device_ids=[0, 1]'`",
     "可在命令行修改：`tandem burnin 文件 'parallel.device_ids=[0, 1]'`"},
    {"tandem: 1", "version of this format", "本格式的版本"},
    {"name: resnet50-burnin", NULL, NULL},
    {"model:", NULL, NULL},
    {"  input: [3, 224, 224]", NULL, NULL},
    {"  builtin: resnet50", "torchvision's network, its names and first weights",
     "torchvision 的网络，名称与初始权重相同"},
    {"  weights: null", "the first weights of the seed; or a file, as weights/resnet50.safetensors",
     "用种子生成的初始权重；或权重文件，如 weights/resnet50.safetensors"},
    {"data:", NULL, NULL},
    {"  eval: {format: synthetic, samples: 256}", "or {format: image_folder, path: data/images}",
     "或 {format: image_folder, path: data/images}"},
    {"  transform: []",
     "of pictures: [{resize: 256}, {center_crop: 224}, to_float, {normalize: {mean: [0.485, 0.456, 0.406], std: "
     "[0.229, 0.224, 0.225]}}]",
     "图片则用 [{resize: 256}, {center_crop: 224}, to_float, {normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, "
     "0.224, 0.225]}}]"},
    {"train:", NULL, NULL},
    {"  batch: {per_device: 32}", "samples that a device predicts at once", "每个设备一次预测的样本数"},
    {"burnin:", NULL, NULL},
    {"  duration: 10m", "or iterations: batches of each device", "或用 iterations：每个设备的批次数"},
    {"  max_samples: 256", "kept in memory, predicted again and again", "留在内存中反复预测"},
    {"parallel:", NULL, NULL},
    {"  device: auto", "cuda: only GPUs; cpu: only the processor", "cuda：只用 GPU；cpu：只用处理器"},
    {"  device_ids: [0]", "the devices, as [0, 1, 2, 3]", "设备，如 [0, 1, 2, 3]"},
    {NULL, NULL, NULL},
};

static const struct {
    const char *task;
    const starter_line *lines;
} starters[] = {{"cifar", cifar}, {"mnist", mnist}, {"toy-mp", toy}, {"resnet50-burnin", burnin}};
enum { STARTER_COUNT = sizeof(starters) / sizeof(starters[0]), COMMENT_COLUMN = 32 };

static void add_line(const starter_line *line, bool chinese, tdm_text *out) {
    const char *meaning = chinese ? line->zh : line->en;
    tdm__text_puts(out, line->yaml);
    if (meaning != NULL) {
        int column = tdm_text_columns(line->yaml);
        for (; column > 0 && column < COMMENT_COLUMN; column++) tdm__text_puts(out, " ");
        tdm__text_printf(out, "%s%s %s", column > COMMENT_COLUMN ? "  " : "", column > 0 ? "#" : "##", meaning);
    }
    tdm__text_puts(out, "\n");
}

tdm_status tdm_config_starter(const char *task, tdm_language language, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter: out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    if (task == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter: task is NULL");
    for (int i = 0; i < STARTER_COUNT; i++) {
        if (strcmp(task, starters[i].task) != 0) continue;
        tdm_text text;
        tdm__text_init(&text, tdm_host_default());
        for (const starter_line *line = starters[i].lines; line->yaml != NULL; line++)
            add_line(line, language == TDM_CHINESE, &text);
        return tdm__text_take_public(&text, out);
    }
    enum { LOOKING = 3 };
    const char *names[STARTER_COUNT + LOOKING] = {"images", "table", "series"}; /* tdm_config_starter_images, ... */
    for (int i = 0; i < STARTER_COUNT; i++) names[i + LOOKING] = starters[i].task;
    const char *near = tdm_text_nearest(task, names, STARTER_COUNT + LOOKING);
    TDM_FAIL(TDM_E_USAGE,
             "there is no starter '%s'%s%s%s; the starters are images, table, series, cifar, mnist, toy-mp and "
             "resnet50-burnin",
             task, near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}
