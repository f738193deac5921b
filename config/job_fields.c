/* The table of the format: every key with its type, default, range, unit and help in two languages. */
#include "config/table.h"
#include "runtime/base/field/field_rows.h"
#include "runtime/graph/graph.h"

#define BIT(value) (1u << (value))

enum { MANY = 1 << 30 };
static const char *const rng_names[] = {"torch_avx2", "torch_generic", NULL};
static const tdm_field root_rows[] = {
    {NAMED(INT, "tandem", tdm_job, version, NULL), RANGE(1, 1), FLAGS(REQUIRED),
     HELP("version of this format", "本格式的版本号")},
    {FIELD(TEXT, tdm_job, name, "job"), FLAGS(LOCAL),
     HELP("name of the job; other keys can use it as ${name}", "任务名；其他地方可用 ${name} 引用")},
    {FIELD(INT, tdm_job, seed, "0"), RANGE(0, 9.3e18), FLAGS(KEPT),
     HELP("seed of initial weights, order of samples and dropout", "决定初始权重、样本顺序和 dropout 的随机种子")},
    {FIELD(BOOL, tdm_job, deterministic, "true"),
     HELP("sum in a fixed order, so that two runs are bit-equal", "固定所有求和的顺序，使两次运行逐位相同")},
    {FIELD(ENUM, tdm_job, rng_profile, "torch_avx2"), .names = rng_names,
     HELP("initial weights and synthetic data are those of a PyTorch build with AVX2, or of one without",
          "初始权重与合成数据同哪种 PyTorch 构建一致：带 AVX2 或不带")},
    {0},
};

static const tdm_field model_rows[] = {
    {FIELD(INTS, tdm_model_head, input, "null"), RANGE(1, 2147483647), ITEMS(1, 5), FLAGS(NULLABLE),
     HELP("shape of one sample without the batch: [channels, height, width], or a number of features",
          "单个样本的形状（不含批次维）：[通道, 高, 宽]，或特征数")},
    {FIELD(TEXT, tdm_model_head, builtin, "null"), FLAGS(NULLABLE),
     HELP("a stock model instead of layers", "使用内置模型而不写 layers")},
    {FIELD(PATH, tdm_model_head, weights, "null"), FLAGS(NULLABLE),
     HELP("a .safetensors file with the weights to start from", "作为起点的 .safetensors 权重文件")},
    {0},
};

static const char *const resident_names[] = {"auto", "always", "never", NULL};
static const tdm_field data_rows[] = {
    {FIELD(BOOL, tdm_data_section, shuffle, "true"), FLAGS(KEPT),
     HELP("a new order of samples in every epoch, the same as DistributedSampler's",
          "每轮重新打乱样本顺序（与 DistributedSampler 相同）")},
    {FIELD(BOOL, tdm_data_section, drop_last, "false"),
     HELP("skip the last, shorter batch of an epoch", "丢弃每轮最后不足一批的样本")},
    {FIELD(INT, tdm_data_section, workers, "2"), RANGE(0, 256), .unit = "threads", FLAGS(LOCAL),
     HELP("loader threads per process; 0: load in the training thread; never changes the numbers",
          "每个进程的加载线程数；0 表示在训练线程中加载；不影响数值结果")},
    {FIELD(ENUM, tdm_data_section, resident, "auto"), .names = resident_names, FLAGS(LOCAL),
     HELP("GPU: keep the training samples in its memory, so that only the sample numbers of a batch are sent; auto: if "
          "they need at most a quarter of the free memory; no effect on the CPU; never changes the numbers",
          "GPU：把训练样本保存在显存中，一个批次只需传送样本编号；auto 表示样本不超过空闲显存的四分之一时这样做；"
          "对 CPU 无意义；不影响数值结果")},
    {0},
};

static const char *const format_names[] = {"none",
#define TDM_FORMAT(key, name, source) #name,
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
                                           NULL};
static const char *const split_names[] = {"auto", "train", "test", NULL};
static const tdm_field spec_rows[] = {
    {FIELD(ENUM, tdm_data_spec, format, NULL), .names = format_names, FLAGS(REQUIRED | MAIN | KEPT),
     HELP("where samples come from; none: the program that embeds tandem provides them",
          "样本来源；none 表示由嵌入 tandem 的程序提供")},
    {FIELD(PATH, tdm_data_spec, images, "null"), .types = BIT(TDM_DATA_IDX), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("idx: file of the images; may be .gz", "idx：图像文件，可为 .gz")},
    {FIELD(PATH, tdm_data_spec, labels, "null"), .types = BIT(TDM_DATA_IDX), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("idx: file of the labels; may be .gz", "idx：标签文件，可为 .gz")},
    {FIELD(PATH, tdm_data_spec, x, "null"), .types = BIT(TDM_DATA_NPY), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("npy: file of the inputs; the first dimension is the sample", "npy：输入文件，第一维为样本")},
    {FIELD(PATH, tdm_data_spec, y, "null"), .types = BIT(TDM_DATA_NPY), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("npy: file of the labels or targets", "npy：标签或目标文件")},
    {FIELD(PATHS, tdm_data_spec, files, "null"), .types = BIT(TDM_DATA_CIFAR10), ITEMS(0, TDM_LIST_MAX),
     FLAGS(NULLABLE | LOCAL), HELP("cifar10: the binary batch files, in order", "cifar10：按顺序列出的二进制批次文件")},
    {FIELD(PATH, tdm_data_spec, path, "null"), .types = BIT(TDM_DATA_CIFAR10) | BIT(TDM_DATA_IMAGE_FOLDER),
     FLAGS(NULLABLE | LOCAL),
     HELP("folder; cifar10: the folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, instead of `files`",
          "目录；cifar10：含 data_batch_1.bin 至 5 与 test_batch.bin，可代替 files")},
    {FIELD(ENUM, tdm_data_spec, split, "auto"), .types = BIT(TDM_DATA_CIFAR10), .names = split_names, FLAGS(KEPT),
     HELP("which files of `path`; auto: test for data.eval, else train",
          "path 中的哪一部分；auto：data.eval 取 test，其余取 train")},
    {FIELD(INTS, tdm_data_spec, range, "null"), .types = ~BIT(TDM_DATA_NONE), RANGE(0, 9.3e18), ITEMS(2, 2),
     FLAGS(NULLABLE | KEPT), .unit = "samples",
     HELP("[first, end): use only these samples; null: all", "[first, end)：只用这些样本；null 表示全部")},
    {FIELD(INT, tdm_data_spec, samples, "10000"), .types = BIT(TDM_DATA_SYNTHETIC) | BIT(TDM_DATA_GLYPHS),
     RANGE(1, 9007199254740992.0), .unit = "samples", FLAGS(KEPT),
     HELP("number of samples to generate", "生成的样本数")},
    {FIELD(INT, tdm_data_spec, classes, "null"), .types = BIT(TDM_DATA_SYNTHETIC), RANGE(1, MANY),
     FLAGS(NULLABLE | KEPT),
     HELP("number of classes that labels are drawn from; null: the model's number of outputs",
          "标签的类别数；null 表示等于模型的输出数")},
    {FIELD(INT, tdm_data_spec, seed, "null"), .types = BIT(TDM_DATA_SYNTHETIC) | BIT(TDM_DATA_GLYPHS), RANGE(0, 9.3e18),
     FLAGS(NULLABLE | KEPT),
     HELP("seed of the generated samples; null: the job's seed", "生成样本的种子；null 表示使用任务的 seed")},
    {FIELD(FLOAT, tdm_data_spec, noise, "0.1"), .types = BIT(TDM_DATA_GLYPHS), RANGE(0, 10), FLAGS(KEPT),
     HELP("standard deviation of the pixel noise; a stroke has the value 1", "像素噪声的标准差；笔画为 1")},
    {0},
};

static const tdm_field transform_rows[] = {
    {FIELD(BOOL, tdm_transform_spec, to_float, "false"),
     HELP("convert bytes to floats from 0 to 1, as torchvision's ToTensor",
          "字节转换为 0 到 1 的浮点数（同 torchvision 的 ToTensor）")},
    {FIELD(FLOATS, tdm_transform_spec, mean, "null"), RANGE(-1e9, 1e9), ITEMS(1, TDM_LIST_MAX), FLAGS(NULLABLE),
     HELP("normalize: subtracted from each channel; one number applies to all channels",
          "normalize：各通道减去的均值；一个数用于所有通道")},
    {NAMED(FLOATS, "std", tdm_transform_spec, stdev, "null"), RANGE(0, 1e9), ITEMS(1, TDM_LIST_MAX),
     FLAGS(NULLABLE | OPEN_MIN),
     HELP("normalize: standard deviation that each channel is divided by", "normalize：各通道除以的标准差")},
    {0},
};

#define TDM_LOSS(name) #name,
static const char *const loss_names[] = {
#include "ops/losses.def"
    NULL,
};
#undef TDM_LOSS
static const tdm_field loss_rows[] = {
    {NAMED(ENUM, "type", tdm_loss_section, kind, "cross_entropy"), .names = loss_names, FLAGS(MAIN),
     HELP("the loss to minimise, averaged over the batch", "被最小化的损失；对批次取平均")},
    {FIELD(FLOAT, tdm_loss_section, label_smoothing, "0"), RANGE(0, 1),
     HELP("fraction of the target that is spread evenly over all classes", "均匀分给所有类别的目标比例")},
    {FIELD(INT, tdm_loss_section, ignore_index, "-100"), RANGE(-9.3e18, 9.3e18),
     HELP("samples with this label do not count", "带此标签的样本不计入损失")},
    {0},
};

#define TDM_OPTIM(name) #name,
static const char *const optimizer_names[] = {
#include "ops/optims.def"
    NULL,
};
#undef TDM_OPTIM
static const char *const adam_forms[] = {"lerp", "muladd", NULL};
static const tdm_field optimizer_rows[] = {
    {FIELD(ENUM, tdm_optimizer_section, type, "adam"), .names = optimizer_names, FLAGS(MAIN | KEPT),
     HELP("how weights are updated", "权重的更新方法")},
    {FIELD(FLOAT, tdm_optimizer_section, lr, "1.0e-3"), RANGE(0, 1e6),
     HELP("learning rate, before the schedule; never rescaled by the number of devices",
          "学习率（调度之前）；不会随设备数缩放")},
    {FIELD(FLOAT, tdm_optimizer_section, momentum, "0"), RANGE(0, 1e6),
     HELP("fraction of the last update that is kept", "保留上一次更新的比例")},
    {FIELD(FLOAT, tdm_optimizer_section, dampening, "0"), RANGE(-1e6, 1e6),
     HELP("fraction of a new gradient that does not enter the momentum", "新梯度不进入动量的比例")},
    {FIELD(BOOL, tdm_optimizer_section, nesterov, "false"),
     HELP("Nesterov momentum; needs momentum above 0 and dampening 0",
          "Nesterov 动量；需要 momentum 且 dampening 为 0")},
    {FIELD(FLOATS, tdm_optimizer_section, betas, "[0.9, 0.999]"), RANGE(0, 1), ITEMS(2, 2), FLAGS(OPEN_MAX),
     HELP("decay rates of the running averages of the gradient and of its square", "梯度及其平方的滑动平均衰减率")},
    {FIELD(FLOAT, tdm_optimizer_section, eps, "1.0e-8"), RANGE(0, 1e6),
     HELP("added to the denominator", "加在分母上的小量")},
    {FIELD(FLOAT, tdm_optimizer_section, weight_decay, "null"), RANGE(0, 1e6), FLAGS(NULLABLE),
     HELP("weight decay; null: PyTorch's default, 0.01 for adamw and 0 otherwise",
          "权重衰减；null 表示 PyTorch 的默认值：adamw 为 0.01，其余为 0")},
    {FIELD(ENUM, tdm_optimizer_section, form, "lerp"), .names = adam_forms,
     HELP("rounding of the first moment: lerp as in PyTorch since 2.1, muladd as in 1.13",
          "一阶矩的舍入方式：lerp 同 PyTorch 2.1 起，muladd 同 1.13")},
    {0},
};

static const char *const schedule_names[] = {"constant", "step", "multistep", "cosine", "onecycle", "linear", NULL};
static const char *const schedule_units[] = {"epoch", "step", NULL};
static const char *const anneal_names[] = {"cos", "linear", NULL};
static const tdm_field schedule_rows[] = {
    {FIELD(ENUM, tdm_schedule_section, type, "constant"), .names = schedule_names, FLAGS(MAIN),
     HELP("how the learning rate changes; the same as PyTorch's schedulers of these names",
          "学习率的变化方式；与 PyTorch 同名调度器一致")},
    {FIELD(ENUM, tdm_schedule_section, per, "epoch"), .names = schedule_units,
     HELP(
         "what the schedule counts; unless written, onecycle counts steps, and cosine and linear do too if train.steps "
         "is given and `total` is not",
         "调度计数的单位；未写时 onecycle 按步计，给出 train.steps 且未写 total 的 cosine 与 linear 也按步计")},
    {FIELD(INT, tdm_schedule_section, warmup_steps, "0"), RANGE(0, 9007199254740992.0), .unit = "steps",
     HELP("steps of linear warm-up before the schedule", "调度开始前学习率线性上升的步数")},
    {FIELD(FLOAT, tdm_schedule_section, warmup_factor, "0.3333333333333333"), RANGE(0, 1), FLAGS(OPEN_MIN),
     HELP("where the warm-up begins, as a fraction of lr", "上升的起点，占 lr 的比例")},
    {FIELD(INT, tdm_schedule_section, step_size, "1"), .types = BIT(TDM_SCHEDULE_STEP), RANGE(1, 9007199254740992.0),
     FLAGS(NEEDED),
     HELP("step: number of epochs or steps between two drops of the learning rate", "step：每隔多少个单位下降一次")},
    {FIELD(FLOAT, tdm_schedule_section, gamma, "0.1"), .types = BIT(TDM_SCHEDULE_STEP) | BIT(TDM_SCHEDULE_MULTISTEP),
     RANGE(0, 1e6), HELP("step, multistep: factor of each drop", "step、multistep：每次下降的倍数")},
    {FIELD(INTS, tdm_schedule_section, milestones, "null"), .types = BIT(TDM_SCHEDULE_MULTISTEP),
     RANGE(1, 9007199254740992.0), ITEMS(1, TDM_LIST_MAX), FLAGS(NEEDED | NULLABLE),
     HELP("multistep: where the learning rate drops, in rising order", "multistep：下降的位置，递增")},
    {FIELD(INT, tdm_schedule_section, total, "null"),
     .types = BIT(TDM_SCHEDULE_COSINE) | BIT(TDM_SCHEDULE_ONECYCLE) | BIT(TDM_SCHEDULE_LINEAR),
     RANGE(1, 9007199254740992.0), FLAGS(NULLABLE),
     HELP("length: cosine T_max, onecycle total_steps, linear total_iters; null: the whole run",
          "长度：cosine 的 T_max、onecycle 的 total_steps、linear 的 total_iters；null 表示整个训练")},
    {FIELD(FLOAT, tdm_schedule_section, min_lr, "0"), .types = BIT(TDM_SCHEDULE_COSINE), RANGE(0, 1e6),
     HELP("cosine: learning rate at the end (eta_min)", "cosine：终点学习率（eta_min）")},
    {FIELD(FLOAT, tdm_schedule_section, max_lr, "null"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1e6),
     FLAGS(NULLABLE),
     HELP("onecycle: learning rate at the peak; null: optimizer.lr", "onecycle：峰值学习率；null 表示 optimizer.lr")},
    {FIELD(FLOAT, tdm_schedule_section, pct_start, "0.3"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1),
     HELP("onecycle: fraction of the run in which the learning rate rises", "onecycle：上升阶段所占比例")},
    {FIELD(FLOAT, tdm_schedule_section, div_factor, "25"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1e12),
     FLAGS(OPEN_MIN),
     HELP("onecycle: the learning rate begins at max_lr divided by this", "onecycle：起点为 max_lr 除以此数")},
    {FIELD(FLOAT, tdm_schedule_section, final_div_factor, "10000"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1e12),
     FLAGS(OPEN_MIN),
     HELP("onecycle: the learning rate ends at its first value divided by this", "onecycle：终点为起点除以此数")},
    {FIELD(ENUM, tdm_schedule_section, anneal, "cos"), .types = BIT(TDM_SCHEDULE_ONECYCLE), .names = anneal_names,
     HELP("onecycle: shape of rise and fall", "onecycle：升降的曲线形状")},
    {FIELD(BOOL, tdm_schedule_section, cycle_momentum, "true"), .types = BIT(TDM_SCHEDULE_ONECYCLE),
     HELP("onecycle: momentum (adam: beta1) falls while the learning rate rises; overrides the optimizer's own value",
          "onecycle：动量（adam 为 beta1）与学习率反向变化，不论优化器自身的取值")},
    {FIELD(FLOAT, tdm_schedule_section, base_momentum, "0.85"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1e6),
     HELP("onecycle: momentum at the peak of the learning rate; for adam it is beta1 and must be below 1",
          "onecycle：学习率峰值处的动量；adam 的 beta1 须小于 1")},
    {FIELD(FLOAT, tdm_schedule_section, max_momentum, "0.95"), .types = BIT(TDM_SCHEDULE_ONECYCLE), RANGE(0, 1e6),
     HELP("onecycle: momentum at the beginning and the end; for adam it is beta1 and must be below 1",
          "onecycle：起点与终点的动量；adam 的 beta1 须小于 1")},
    {FIELD(BOOL, tdm_schedule_section, three_phase, "false"), .types = BIT(TDM_SCHEDULE_ONECYCLE),
     HELP("onecycle: the fall takes as long as the rise; a third phase goes on to the final learning rate",
          "onecycle：先对称下降，再降至终点")},
    {FIELD(FLOAT, tdm_schedule_section, start_factor, "0.3333333333333333"), .types = BIT(TDM_SCHEDULE_LINEAR),
     RANGE(0, 1), FLAGS(OPEN_MIN), HELP("linear: where it begins, as a fraction of lr", "linear：起点，占 lr 的比例")},
    {FIELD(FLOAT, tdm_schedule_section, end_factor, "1"), .types = BIT(TDM_SCHEDULE_LINEAR), RANGE(0, 1),
     HELP("linear: where it ends, as a fraction of lr", "linear：终点，占 lr 的比例")},
    {0},
};

static const char *const precision_names[] = {"f32", "tf32", "bf16", NULL};
static const tdm_field train_rows[] = {
    {FIELD(INT, tdm_train_section, epochs, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "epochs",
     HELP("passes over the training data; write this or steps", "遍历训练数据的轮数；与 steps 二选一")},
    {FIELD(INT, tdm_train_section, steps, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE), .unit = "steps",
     HELP("optimizer steps in total; write this or epochs", "优化器总步数；与 epochs 二选一")},
    {FIELD(INT, tdm_train_section, accumulate, "1"), RANGE(1, MANY),
     HELP("micro-batches per device and optimizer step", "每个设备把一步的样本切成几个微批次")},
    {FIELD(FLOAT, tdm_train_section, clip_grad_norm, "null"), RANGE(0, 1e30), FLAGS(NULLABLE | OPEN_MIN),
     HELP("maximum norm of all gradients together; null: no clipping", "全部梯度的最大范数；null 表示不裁剪")},
    {FIELD(ENUM, tdm_train_section, precision, "f32"), .names = precision_names,
     HELP("precision of the arithmetic; tf32 and bf16 need CUDA", "运算精度；tf32 与 bf16 需要 CUDA")},
    {0},
};
static const tdm_field batch_rows[] = {
    {FIELD(INT, tdm_train_section, per_device, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples of each device per optimizer step; write this or global", "每个设备每步的样本数；与 global 二选一")},
    {NAMED(INT, "global", tdm_train_section, global_batch, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples of all devices together per optimizer step; write this or per_device",
          "所有设备每步的样本总数；与 per_device 二选一")},
    {0},
};

static const char *const mode_names[] = {
#define TDM_MODE(name) #name,
#include "modes/modes.def"
#undef TDM_MODE
    NULL,
};
static const char *const device_names[] = {"auto", "cpu", "cuda", NULL};
static const char *const kernel_names[] = {"auto", "ref", "fast", NULL};
static const tdm_field parallel_rows[] = {
    {FIELD(ENUM, tdm_parallel_section, mode, "single"), .names = mode_names,
     HELP("single; dp: one process, as torch DataParallel; ddp: one process per device, as DistributedDataParallel",
          "single；dp：单进程多设备，同 torch DataParallel；ddp：每设备一进程，同 DistributedDataParallel")},
    {FIELD(ENUM, tdm_parallel_section, device, "auto"), .names = device_names,
     HELP("auto: CUDA if there is a usable GPU, else the CPU", "auto：有可用 GPU 时用 CUDA，否则用 CPU")},
    {FIELD(INTS, tdm_parallel_section, device_ids, "[0]"), RANGE(0, 1023), ITEMS(1, TDM_LIST_MAX), FLAGS(LOCAL),
     HELP("dp: the devices of this process; ddp without a launcher: one local rank each; on the CPU: virtual devices",
          "dp：本进程的设备；ddp 无启动器时每个设备一个本地进程；CPU 上为虚拟设备")},
    {FIELD(INT, tdm_parallel_section, threads_per_device, "null"), RANGE(1, 1024), FLAGS(NULLABLE | LOCAL),
     .unit = "threads",
     HELP(
         "CPU threads of each device; never changes the numbers; null: the cores that this process may use, divided by "
         "the devices on this machine",
         "每个设备的 CPU 线程数；null：可用核数除以本机设备数。不影响任何数值")},
    {FIELD(BOOL, tdm_parallel_section, allow_shared_device, "false"), FLAGS(LOCAL),
     HELP("allow device_ids to name a device twice, to try several replicas on one GPU",
          "允许 device_ids 重复，以便在一块 GPU 上试多个副本")},
    {FIELD(ENUM, tdm_parallel_section, kernels, "auto"), .names = kernel_names,
     HELP("ref: only the plain reference kernels; fast: also Winograd convolutions, which are less accurate",
          "ref：只用朴素的参考实现；fast：允许精度较低的 Winograd 卷积")},
    {FIELD(INT, tdm_parallel_section, stages, "1"), RANGE(1, 64),
     HELP("devices that one replica is split over; each layer then needs `stage`",
          "一个副本切分到几个设备；此时各层带 stage")},
    {FIELD(INTERVAL, tdm_parallel_section, verify, "null"), FLAGS(NULLABLE),
     HELP("how often the replicas are compared: parameters, optimizer state, counters; they are always compared before "
          "an evaluation and before a checkpoint; null: only then",
          "多久核对一次各副本的参数、优化器状态与计数；每次评估和保存检查点之前总会核对；null 表示仅在那时")},
    {0},
};
static const char *const scatter_names[] = {"chunk", "strided", NULL};
static const char *const dp_loss_names[] = {"gathered", "replica", NULL};
static const char *const update_names[] = {"root", "all", NULL};
static const tdm_field dp_rows[] = {
    {FIELD_IN(INT, tdm_parallel_section, dp, output_device, "0"), RANGE(0, 1023), FLAGS(LOCAL),
     HELP("device that gathers outputs and gradients; unless written, the first of device_ids",
          "汇集输出与梯度的设备；未写时为 device_ids 的第一个")},
    {FIELD_IN(ENUM, tdm_parallel_section, dp, scatter, "chunk"), .names = scatter_names, FLAGS(LOCAL),
     HELP("chunk: split the batch as DataParallel does; strided: each replica gets the samples of its ddp rank",
          "chunk：DataParallel 的切分方式；strided：各副本得到与 ddp 相应进程相同的样本")},
    {FIELD_IN(ENUM, tdm_parallel_section, dp, loss, "gathered"), .names = dp_loss_names, FLAGS(LOCAL),
     HELP("gathered: gather the outputs and compute one loss; replica: compute the loss in each replica",
          "gathered：汇集输出后计算一次损失；replica：在各副本内计算")},
    {FIELD_IN(ENUM, tdm_parallel_section, dp, update, "root"), .names = update_names, FLAGS(LOCAL),
     HELP("root: one replica runs the optimizer and its weights are copied out each step; all: every replica runs it",
          "root：只更新一份权重再逐步分发；all：每个副本各自更新")},
    {0},
};
static const char *const backend_names[] = {"auto",
#define TDM_BACKEND(key, name, source) #name,
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
                                            NULL};
static const char *const average_names[] = {"samples", "ranks", NULL};
static const tdm_field ddp_rows[] = {
    {FIELD_IN(ENUM, tdm_parallel_section, ddp, backend, "auto"), .names = backend_names, FLAGS(LOCAL),
     HELP("backend that reduces gradients between ranks; auto: shm on the CPUs of one host",
          "进程间梯度通信的后端；auto：单机 CPU 用 shm")},
    {FIELD_IN(TEXT, tdm_parallel_section, ddp, init_method, "env"), FLAGS(LOCAL),
     HELP("how ranks find each other: env, tcp://host:port or file:///path",
          "进程如何相互发现：env、tcp://host:port 或 file:///path")},
    {FIELD_IN(ENUM, tdm_parallel_section, ddp, average, "samples"), .names = average_names,
     HELP(
         "how the loss of a step is averaged; samples: over all samples that count, as in dp; ranks: over the means of "
         "the ranks, as DistributedDataParallel; they differ only if labels are ignored",
         "每步损失对什么取平均：samples 为所有计入的样本，同 dp；ranks 为各进程均值的平均，同 "
         "DistributedDataParallel；仅在有被忽略的标签时不同")},
    {FIELD_IN(FLOAT, tdm_parallel_section, ddp, bucket_cap_mb, "25"), RANGE(0, 1e6), FLAGS(OPEN_MIN), .unit = "MiB",
     HELP("size of a gradient bucket; buckets are reduced while backward runs", "反向传播期间按此大小分桶发送梯度")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, find_unused_parameters, "false"),
     HELP("as in PyTorch; changes nothing, because every parameter has a gradient in each step",
          "同 PyTorch；不起作用，因为每个参数每步都有梯度")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, broadcast_buffers, "true"),
     HELP("broadcast rank 0's batch-norm statistics to all ranks before each forward",
          "每次前向前把 0 号进程的批归一化统计量广播给所有进程")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, check_reduction, "false"),
     HELP("verify that every bucket was reduced before the optimizer steps", "优化器更新前核对每个桶都已归约")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, timeout, "10m"), FLAGS(OPEN_MIN | LOCAL), .unit = "seconds",
     HELP("longest wait for another rank", "等待其他进程的最长时间")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, heartbeat, "5s"), RANGE(1, 9.3e18), FLAGS(NULLABLE | LOCAL),
     .unit = "seconds",
     HELP("a rank that gives no sign of life for this long ends the job; null: never, for use with a debugger",
          "进程在此时间内没有心跳即结束任务；null 表示不检查，例如使用调试器时")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, grace, "30s"), FLAGS(OPEN_MIN), .unit = "seconds",
     HELP("time that processes started by tandem have to stop when asked; then they are killed",
          "由 tandem 启动的进程收到停止请求后的宽限时间；超时则被强制结束")},
    {0},
};

static const tdm_field eval_rows[] = {
    {FIELD_IN(INTERVAL, tdm_job, eval, every, "1 epoch"), FLAGS(NULLABLE),
     HELP("how often data.eval is evaluated; null: never", "多久在 data.eval 上评估一次；null 表示从不")},
    {FIELD_IN(INT, tdm_job, eval, batch, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples that a device evaluates at once, the same in train, eval and predict; null: as many as a device "
          "processes at once in training",
          "每个设备一次评估的样本数，训练、eval 与 predict 相同；null 表示与训练时一次处理的样本数相同")},
    {0},
};
static const tdm_field checkpoint_rows[] = {
    {FIELD(INTERVAL, tdm_checkpoint_section, every, "1 epoch"), FLAGS(NULLABLE),
     HELP("how often a checkpoint is saved; the end of a run always saves one",
          "多久保存一次检查点；结束时总会保存一次")},
    {FIELD(INT, tdm_checkpoint_section, keep_last, "3"), RANGE(1, MANY), .unit = "checkpoints", FLAGS(LOCAL),
     HELP("checkpoints to keep; older ones are removed", "保留最近几个检查点，更旧的删除")},
    {FIELD(TEXT, tdm_checkpoint_section, resume, "auto"), FLAGS(OF_START),
     HELP("auto: continue from the run directory's checkpoint; never: start anew; or the path of a checkpoint",
          "auto：从运行目录中的检查点继续；never：从头开始；或检查点路径")},
    {0},
};
static const tdm_field run_rows[] = {
    {FIELD_IN(PATH, tdm_job, run, dir, "runs/${name}/${start_time}"), FLAGS(NULLABLE | LOCAL | OF_START),
     HELP("the run directory; null: write no files", "运行结果的目录；null 表示不写任何文件")},
    {0},
};
static const char *const progress_names[] = {"auto", "always", "never", NULL};
static const tdm_field log_rows[] = {
    {FIELD_IN(INTERVAL, tdm_job, log, every, "50 steps"), FLAGS(NULLABLE | LOCAL),
     HELP("how often a line of numbers is printed if there is no progress bar", "没有进度条时多久输出一行数字")},
    {FIELD_IN(ENUM, tdm_job, log, progress, "auto"), .names = progress_names, FLAGS(LOCAL),
     HELP("progress bar; auto: if stderr is a terminal", "进度条；auto：stderr 为终端时显示")},
    {FIELD_IN(BOOL, tdm_job, log, tensorboard, "false"), FLAGS(LOCAL),
     HELP("also write TensorBoard event files", "同时写 TensorBoard 事件文件")},
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
         "id of the output that the layer takes, or a list of ids; null: the layer before; `input` is the model's input",
         "所取输出的 id，可为一个或列表；null 表示上一层；input 表示模型输入")},
    {FIELD(INT, tdm_layer_head, stage, "null"), RANGE(0, 63), .flags = TDM_FIELD_NULLABLE,
     HELP("which of parallel.stages the layer runs in (not in this build: above 0)",
          "运行在 parallel.stages 的哪一段（本构建不含：大于 0）")},
    {0},
};

static bool is_among(const char *const *keys, const char *key) {
    while (*keys != NULL && !tdm__text_same(*keys, key)) keys++;
    return *keys != NULL;
}

static bool loss_has(int type, const char *key) {
    return is_among(tdm_builtin_losses[type]->keys, key);
}

static bool optimizer_has(int type, const char *key) {
    return is_among(tdm_builtin_optims[type]->keys, key);
}

#define AT(member) offsetof(tdm_settings, member)
const tdm_section tdm__sections[TDM_SECTION_COUNT] = {
    {"", AT(job), root_rows, NULL, NULL, "the job", "任务"},
    {"model", AT(model), model_rows, NULL, NULL, "the network: input, layers, weights to start from",
     "网络：输入、各层、初始权重"},
    {"data", AT(job.data), data_rows, NULL, NULL, "the samples and how they are read", "样本及其读取方式"},
    {"data.train", AT(job.data.train), spec_rows, "format", NULL, "samples to train on", "训练样本"},
    {"data.eval", AT(job.data.eval), spec_rows, "format", NULL, "samples to evaluate on; null: none",
     "评估样本；null 表示没有"},
    {"data.transform", AT(job.data.transform), transform_rows, NULL, NULL,
     "steps applied to each sample: a list of to_float and normalize",
     "对每个样本的处理：由 to_float 与 normalize 组成的列表"},
    {"loss", AT(job.loss), loss_rows, "type", loss_has, "the loss to minimise", "损失函数"},
    {"optimizer", AT(job.optimizer), optimizer_rows, "type", optimizer_has, "how weights are updated", "优化器"},
    {"schedule", AT(job.schedule), schedule_rows, "type", NULL, "how the learning rate changes", "学习率调度"},
    {"train", AT(job.train), train_rows, NULL, NULL, "length and batches of the run", "训练长度与批次"},
    {"train.batch", AT(job.train), batch_rows, NULL, NULL, "samples per optimizer step: per_device or global",
     "每步的样本数：per_device 或 global"},
    {"parallel", AT(job.parallel), parallel_rows, NULL, NULL, "devices and how they work together", "设备及其协作方式"},
    {"parallel.dp", AT(job.parallel), dp_rows, NULL, NULL, "for mode dp", "用于 dp 模式"},
    {"parallel.ddp", AT(job.parallel), ddp_rows, NULL, NULL, "for mode ddp", "用于 ddp 模式"},
    {"eval", AT(job), eval_rows, NULL, NULL, "evaluation on data.eval", "评估"},
    {"checkpoint", AT(job.checkpoint), checkpoint_rows, NULL, NULL, "saving and resuming", "保存与恢复"},
    {"run", AT(job), run_rows, NULL, NULL, "where results go", "结果位置"},
    {"log", AT(job), log_rows, NULL, NULL, "what is printed", "日志"},
};
