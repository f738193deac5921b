/* Keys of the job itself, of evaluation, checkpoints, the run directory and the log. */
#include "config/fields/fields.h"

static const char *const rng_names[] = {"torch_avx2", "torch_generic", NULL};
const tdm_field tdm__root_rows[] = {
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

static const char *const weights_names[] = {"ema", "model", NULL};
const tdm_field tdm__eval_rows[] = {
    {FIELD_IN(INTERVAL, tdm_job, eval, every, "1 epoch"), FLAGS(NULLABLE),
     HELP("how often data.eval is evaluated, besides at the end of the run; null: only there",
          "多久在 data.eval 上评估一次，运行结束时总会评估；null 表示仅在那时")},
    {FIELD_IN(INT, tdm_job, eval, batch, "null"), RANGE(1, MANY), FLAGS(NULLABLE), .unit = "samples",
     HELP("samples that a device evaluates at once, the same in train, eval and predict; null: as many as a device "
          "processes at once in training",
          "每个设备一次评估的样本数，训练、eval 与 predict 相同；null 表示与训练时一次处理的样本数相同")},
    {FIELD_IN(ENUM, tdm_job, eval, weights, "ema"), .names = weights_names,
     HELP("the weights that are evaluated, also by eval and predict, where there is train.ema: its average, or the "
          "model's own",
          "使用 train.ema 时评估（包括 eval 与 predict）哪种权重：平均值 (ema) 或模型自身 (model)")},
    {0},
};
const tdm_field tdm__checkpoint_rows[] = {
    {FIELD(INTERVAL, tdm_checkpoint_section, every, "1 epoch"), FLAGS(NULLABLE),
     HELP("how often a checkpoint is saved; the end of a run always saves one",
          "多久保存一次检查点；结束时总会保存一次")},
    {FIELD(INT, tdm_checkpoint_section, keep_last, "3"), RANGE(1, MANY), .unit = "checkpoints", FLAGS(LOCAL),
     HELP("checkpoints to keep; older ones are removed", "保留最近几个检查点，更旧的删除")},
    {FIELD(ENUM, tdm_checkpoint_section, keep_best, "none"), .names = tdm__metric_names,
     HELP("an evaluation that is the best so far by this metric saves a checkpoint, which keep_last does not remove; "
          "checkpoints/best names it",
          "按此指标，迄今最好的一次评估会保存检查点，keep_last 不会删除它；checkpoints/best 记录其名称")},
    {FIELD(TEXT, tdm_checkpoint_section, resume, "auto"), FLAGS(OF_START),
     HELP("auto: continue from the run directory's checkpoint; never: start anew; or the path of a checkpoint",
          "auto：从运行目录中的检查点继续；never：从头开始；或检查点路径")},
    {0},
};
const tdm_field tdm__run_rows[] = {
    {FIELD_IN(PATH, tdm_job, run, dir, "runs/${name}/${start_time}"), FLAGS(NULLABLE | LOCAL | OF_START),
     HELP("the run directory; null: write no files", "运行结果的目录；null 表示不写任何文件")},
    {0},
};
const tdm_field tdm__burnin_rows[] = {
    {FIELD(INT, tdm_burnin_section, iterations, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE | LOCAL),
     .unit = "batches", HELP("batches of each device; null: no limit", "每个设备的批次数；null 表示不限")},
    {FIELD(DURATION, tdm_burnin_section, duration, "null"), RANGE(0, 9e9), FLAGS(NULLABLE | OPEN_MIN | LOCAL),
     .unit = "seconds",
     HELP("how long each device works, to the end of the batch; null: no limit; with neither limit, 1m",
          "每个设备工作多久，做完当前批次为止；null 表示不限；两者都不写则为 1m")},
    {FIELD(INT, tdm_burnin_section, max_samples, "256"), RANGE(1, MANY), FLAGS(LOCAL), .unit = "samples",
     HELP("at most this many samples, spread over the data, are kept in memory and predicted again and again",
          "最多取多少个样本（均匀取自数据）留在内存中反复预测")},
    {FIELD(FLOAT, tdm_burnin_section, tolerance, "null"), RANGE(0, 1), FLAGS(NULLABLE | LOCAL),
     HELP("how far outputs of devices may differ, relative to the largest output of a sample; null: 1e-4, tf32 0.01, "
          "bf16 0.05",
          "各设备输出之间允许的差，相对于该样本最大的输出；null 为 1e-4，tf32 为 0.01，bf16 为 0.05")},
    {0},
};
const tdm_field tdm__host_rows[] = {
    {FIELD(SIZE, tdm_host_section, memory_limit, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE | LOCAL),
     HELP(
         "the most memory that a run may take in each of its processes, beyond the program itself; one that needs more "
         "is refused before it trains; null: no limit",
         "运行在每个进程中（程序自身之外）最多可用的内存；需要更多时在训练前拒绝；null 表示不限")},
    {0},
};
static const char *const progress_names[] = {"auto", "always", "never", NULL};
const tdm_field tdm__log_rows[] = {
    {FIELD_IN(INTERVAL, tdm_job, log, every, "50 steps"), FLAGS(NULLABLE | LOCAL),
     HELP("how often a line of numbers is printed if there is no progress bar", "没有进度条时多久输出一行数字")},
    {FIELD_IN(ENUM, tdm_job, log, progress, "auto"), .names = progress_names, FLAGS(LOCAL),
     HELP("progress bar; auto: if stderr is a terminal", "进度条；auto：stderr 为终端时显示")},
    {FIELD_IN(BOOL, tdm_job, log, tensorboard, "false"), FLAGS(LOCAL),
     HELP("also write the numbers of metrics.jsonl as TensorBoard event files, in tensorboard/ of the run directory",
          "同时把 metrics.jsonl 的数值写成 TensorBoard 事件文件，位于运行目录的 tensorboard/")},
    {0},
};
