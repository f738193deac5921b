/* Keys of the loss, the optimizer, its schedule and the run's length. */
#include "config/fields/fields.h"

#define TDM_LOSS(name) #name,
static const char *const loss_names[] = {
#include "ops/losses.def"
    NULL,
};
#undef TDM_LOSS
const tdm_field tdm__loss_rows[] = {
    {NAMED(ENUM, "type", tdm_loss_section, kind, "cross_entropy"), .names = loss_names, FLAGS(MAIN),
     HELP("the loss to minimise, averaged over the batch", "被最小化的损失；对批次取平均")},
    {FIELD(FLOAT, tdm_loss_section, label_smoothing, "0"), RANGE(0, 1),
     HELP("fraction of the target that is spread evenly over all classes", "均匀分给所有类别的目标比例")},
    {FIELD(INT, tdm_loss_section, ignore_index, "-100"), RANGE(-9.3e18, 9.3e18),
     HELP("samples with this label do not count", "带此标签的样本不计入损失")},
    {FIELD(FLOAT, tdm_loss_section, beta, "1"), RANGE(0, 1e30),
     HELP("difference from which the loss is no longer squared but absolute", "误差达到此值后由平方转为绝对值")},
    {FIELD(FLOATS, tdm_loss_section, pos_weight, "null"), RANGE(0, 1e30), ITEMS(1, TDM_LIST_MAX), FLAGS(NULLABLE),
     HELP("weight of targets that are 1: one number, or one for each output; null: 1",
          "目标为 1 的权重：一个数，或每个输出一个；null 为 1")},
    {0},
};

#define TDM_OPTIM(name) #name,
static const char *const optimizer_names[] = {
#include "ops/optims.def"
    NULL,
};
#undef TDM_OPTIM
static const char *const adam_forms[] = {"lerp", "muladd", NULL};
const tdm_field tdm__optimizer_rows[] = {
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
    {FIELD(BOOL, tdm_optimizer_section, amsgrad, "false"),
     HELP("divide by the largest running average of squares so far, not by the last",
          "除以迄今最大的平方滑动平均，而非最近一次的")},
    {FIELD(FLOAT, tdm_optimizer_section, alpha, "0.99"), RANGE(0, 1),
     HELP("decay rate of the running averages", "滑动平均的衰减率")},
    {FIELD(BOOL, tdm_optimizer_section, centered, "false"),
     HELP("divide by the gradient's variance: subtract the square of its running average",
          "除以梯度的方差：减去其滑动平均的平方")},
    {0},
};

const tdm_field tdm__group_rows[] = {
    {FIELD(TEXTS, tdm_param_group, params, NULL), ITEMS(1, TDM_LIST_MAX), FLAGS(REQUIRED),
     HELP("patterns of parameter names, such as \"*.bias\"", "参数名的模式，例如 \"*.bias\"")},
    {FIELD(FLOAT, tdm_param_group, lr, "null"), RANGE(0, 1e6), FLAGS(NULLABLE),
     HELP("learning rate of the group, before the schedule; null: optimizer.lr",
          "该组的学习率（调度之前）；null 表示 optimizer.lr")},
    {FIELD(FLOAT, tdm_param_group, weight_decay, "null"), RANGE(0, 1e6), FLAGS(NULLABLE),
     HELP("weight decay of the group; null: optimizer.weight_decay",
          "该组的权重衰减；null 表示 optimizer.weight_decay")},
    {0},
};

static const char *const schedule_names[] = {"constant", "step", "multistep", "cosine", "onecycle", "linear", NULL};
static const char *const schedule_units[] = {"epoch", "step", NULL};
static const char *const anneal_names[] = {"cos", "linear", NULL};
const tdm_field tdm__schedule_rows[] = {
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

static const char *const recompute_names[] = {"auto", "always", "never", NULL};
static const char *const precision_names[] = {"f32", "tf32", "bf16", NULL};
const tdm_field tdm__train_rows[] = {
    {FIELD(INT, tdm_train_section, epochs, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "epochs",
     HELP("passes over the training data; write this or steps", "遍历训练数据的轮数；与 steps 二选一")},
    {FIELD(INT, tdm_train_section, steps, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE), .unit = "steps",
     HELP("optimizer steps in total; write this or epochs", "优化器总步数；与 epochs 二选一")},
    {FIELD(INT, tdm_train_section, accumulate, "1"), RANGE(1, MANY),
     HELP("micro-batches per device and optimizer step", "每个设备把一步的样本切成几个微批次")},
    {FIELD(FLOAT, tdm_train_section, clip_grad_norm, "null"), RANGE(0, 1e30), FLAGS(NULLABLE | OPEN_MIN),
     HELP("maximum norm of all gradients together; null: no clipping", "全部梯度的最大范数；null 表示不裁剪")},
    {FIELD(ENUM, tdm_train_section, precision, "f32"), .names = precision_names,
     HELP("precision of the arithmetic; tf32 needs CUDA, bf16 CUDA or a CPU with AMX",
          "运算精度；tf32 需要 CUDA，bf16 需要 CUDA 或带 AMX 的 CPU")},
    {FIELD(ENUM, tdm_train_section, recompute, "auto"), .names = recompute_names, FLAGS(LOCAL),
     HELP("make layers' outputs again for the backward pass instead of keeping them: less memory, the same bits; auto: "
          "on the CPU, those of at least 1 MiB",
          "反向时重新计算某些层的输出而不保留：省内存，数值逐位相同；auto 表示在 CPU 上对 1 MiB 以上的输出这样做")},
    {0},
};
const tdm_field tdm__batch_rows[] = {
    {FIELD(INT, tdm_train_section, per_device, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples of each device per optimizer step; write this or global", "每个设备每步的样本数；与 global 二选一")},
    {NAMED(INT, "global", tdm_train_section, global_batch, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples of all devices together per optimizer step; write this or per_device",
          "所有设备每步的样本总数；与 per_device 二选一")},
    {0},
};
const char *const tdm__metric_names[] = {"none", "accuracy", "top5", "loss", NULL};
const tdm_field tdm__stop_early_rows[] = {
    {NAMED(INT, "after", tdm_train_section, stop_after, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "evaluations",
     HELP("evaluations in a row without an improvement after which the run ends; null: it runs to its last step",
          "连续多少次评估没有改善就结束训练；null 表示训练到最后一步")},
    {NAMED(ENUM, "metric", tdm_train_section, stop_metric, "accuracy"), .names = tdm__metric_names,
     HELP("what must improve; top5 needs more than 5 classes", "须改善的指标；top5 需要多于 5 个类别")},
    {NAMED(FLOAT, "min_delta", tdm_train_section, stop_min_delta, "0"), RANGE(0, 1e30),
     HELP("a smaller or equal change is no improvement", "变化不超过此值不算改善")},
    {0},
};

const tdm_field tdm__ema_rows[] = {
    {NAMED(FLOAT, "decay", tdm_train_section, ema_decay, "null"), RANGE(0, 1), FLAGS(NULLABLE | OPEN_MAX),
     HELP("part of the average that an update keeps, such as 0.999; null: no average",
          "每次更新保留的平均值比例，如 0.999；null 表示不做平均")},
    {NAMED(BOOL, "warmup", tdm_train_section, ema_warmup, "false"),
     HELP("after n updates the decay is at most (1 + n) / (10 + n), so that the first weights are soon forgotten",
          "n 次更新后衰减率不超过 (1 + n) / (10 + n)，使初始权重很快被遗忘")},
    {NAMED(INT, "every", tdm_train_section, ema_every, "1"), RANGE(1, MANY), .unit = "steps",
     HELP("optimizer steps between two updates of the average", "每隔多少个优化器步更新一次平均值")},
    {0},
};
