/* The sections of the format, each with its keys. */
#include "config/fields/fields.h"
#include "runtime/graph/graph.h"

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
    {"", AT(job), tdm__root_rows, NULL, NULL, "the job", "任务"},
    {"model", AT(model), tdm__model_rows, NULL, NULL, "the network: input, layers, weights to start from",
     "网络：输入、各层、初始权重"},
    {"data", AT(job.data), tdm__data_rows, NULL, NULL, "the samples and how they are read", "样本及其读取方式"},
    {"data.train", AT(job.data.train), tdm__spec_rows, "format", NULL, "samples to train on", "训练样本"},
    {"data.eval", AT(job.data.eval), tdm__spec_rows, "format", NULL, "samples to evaluate on; null: none",
     "评估样本；null 表示没有"},
    {"data.transform", AT(job.data.transform), tdm__transform_rows, NULL, NULL,
     "steps applied to each sample: a list, steps for pictures first, then to_float and normalize",
     "对每个样本的处理：一个列表，先是图片的步骤，后为 to_float 与 normalize"},
    {"data.transform.normalize", AT(job.data.transform.normalize.item), tdm__normalize_rows, NULL, NULL,
     "a step: (x - mean) / std; with several inputs there may be several, each for the inputs that it names",
     "步骤：(x - mean) / std；有多个输入时可写多个，各自作用于其 inputs 所列的输入"},
    {"loss", AT(job.loss), tdm__loss_rows, "type", loss_has, "the loss to minimise", "损失函数"},
    {"optimizer", AT(job.optimizer), tdm__optimizer_rows, "type", optimizer_has, "how weights are updated", "优化器"},
    {"optimizer.groups", AT(job.optimizer.groups.item), tdm__group_rows, NULL, NULL,
     "parameters with a learning rate or weight decay of their own; the first group that matches takes a parameter",
     "有各自学习率或权重衰减的参数组；参数归入第一个匹配的组"},
    {"schedule", AT(job.schedule), tdm__schedule_rows, "type", NULL, "how the learning rate changes", "学习率调度"},
    {"train", AT(job.train), tdm__train_rows, NULL, NULL, "length and batches of the run", "训练长度与批次"},
    {"train.batch", AT(job.train), tdm__batch_rows, NULL, NULL, "samples per step: per_device or global",
     "每步的样本数：per_device 或 global"},
    {"train.stop_early", AT(job.train), tdm__stop_early_rows, NULL, NULL,
     "ending the run when evaluations stop improving", "评估不再改善时提前结束"},
    {"train.ema", AT(job.train), tdm__ema_rows, NULL, NULL,
     "an exponential moving average of the parameters, beside those that are trained",
     "参数的指数滑动平均，与训练中的参数并存"},
    {"parallel", AT(job.parallel), tdm__parallel_rows, NULL, NULL, "devices and how they work together",
     "设备及其协作方式"},
    {"parallel.dp", AT(job.parallel), tdm__dp_rows, NULL, NULL, "for mode dp", "用于 dp 模式"},
    {"parallel.ddp", AT(job.parallel), tdm__ddp_rows, NULL, NULL, "for mode ddp", "用于 ddp 模式"},
    {"parallel.ddp.compress", AT(job.parallel.ddp.compress), tdm__compress_rows, "type", NULL,
     "how gradients are sent between ranks", "进程间梯度的传送方式"},
    {"eval", AT(job), tdm__eval_rows, NULL, NULL, "evaluation on data.eval", "评估"},
    {"checkpoint", AT(job.checkpoint), tdm__checkpoint_rows, NULL, NULL, "saving and resuming", "保存与恢复"},
    {"run", AT(job), tdm__run_rows, NULL, NULL, "where results go", "结果位置"},
    {"burnin", AT(job.burnin), tdm__burnin_rows, NULL, NULL, "how long `tandem burnin` runs, and what it tolerates",
     "`tandem burnin` 运行多久、容许多大差异"},
    {"host", AT(job.host), tdm__host_rows, NULL, NULL, "what the machine grants a process", "机器给予进程的资源"},
    {"log", AT(job), tdm__log_rows, NULL, NULL, "what is printed", "日志"},
};

const tdm_section_list *tdm__section_list(const tdm_section *section) {
    static const tdm_section_list lists[] = {
        {tdm__normalize_rows, AT(job.data.transform.normalize.count), sizeof(tdm_normalize), TDM_SHAPES_MAX},
        {tdm__group_rows, AT(job.optimizer.groups.count), sizeof(tdm_param_group), TDM_PARAM_GROUPS_MAX},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (section->rows == lists[i].rows) return &lists[i];
    return NULL;
}
