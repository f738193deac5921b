/* Keys of the devices and of the modes. */
#include "config/fields/fields.h"

static const char *const mode_names[] = {
#define TDM_MODE(name) #name,
#include "modes/modes.def"
#undef TDM_MODE
    NULL,
};
static const char *const device_names[] = {"auto", "cpu", "cuda", NULL};
static const char *const kernel_names[] = {"auto", "ref", "fast", NULL};
const tdm_field tdm__parallel_rows[] = {
    {FIELD(ENUM, tdm_parallel_section, mode, "single"), .names = mode_names,
     HELP("single; dp: one process, as torch DataParallel; ddp: one process per device, as DistributedDataParallel",
          "single；dp：单进程多设备，同 torch DataParallel；ddp：每设备一进程，同 DistributedDataParallel")},
    {FIELD(ENUM, tdm_parallel_section, device, "auto"), .names = device_names,
     HELP("auto: CUDA if there is a usable GPU, else the CPU", "auto：有可用 GPU 时用 CUDA，否则用 CPU")},
    {FIELD(INTS, tdm_parallel_section, device_ids, "[0]"), RANGE(0, 1023), ITEMS(1, TDM_LIST_MAX), FLAGS(LOCAL),
     HELP(
         "dp: the devices of this process; ddp without a launcher: one local rank each; with parallel.stages: as many "
         "in a row for each replica; on the CPU: virtual devices",
         "dp：本进程的设备；ddp 无启动器时每个设备一个本地进程；有 parallel.stages 时每个副本依次占用同样多的设备；CPU 上为虚拟设备")},
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
     HELP(
         "devices that one replica is split over; layers say with `stage` where they run, or, if none does, stages are "
         "cut by their work; train.accumulate micro-batches keep the stages busy",
         "一个副本切分到几个设备；各层用 stage 指定所在的段，都未写时按计算量切分；train.accumulate 个微批使各段同时工作")},
    {FIELD(BOOL, tdm_parallel_section, sync_batchnorm, "false"),
     HELP(
         "batch norm takes the statistics of all devices' rows, as torch SyncBatchNorm, with join of those that are "
         "there; false: each device its own",
         "批归一化使用所有设备样本的统计量，同 torch SyncBatchNorm（有 join 时为实有样本）；false 表示各设备用自己的")},
    {FIELD(INTERVAL, tdm_parallel_section, verify, "null"), FLAGS(NULLABLE),
     HELP("how often the replicas are compared: parameters, optimizer state, counters; they are always compared before "
          "an evaluation and before a checkpoint; null: only then",
          "多久核对一次各副本的参数、优化器状态与计数；每次评估和保存检查点之前总会核对；null 表示仅在那时")},
    {0},
};
static const char *const scatter_names[] = {"chunk", "strided", NULL};
static const char *const dp_loss_names[] = {"gathered", "replica", NULL};
static const char *const update_names[] = {"root", "all", NULL};
const tdm_field tdm__dp_rows[] = {
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
     HELP(
         "root: one replica runs the optimizer, and its weights are copied to the others in each step; all: every replica "
         "runs it",
         "root：只更新一份权重再逐步分发；all：每个副本各自更新")},
    {0},
};
static const char *const backend_names[] = {"auto",
#define TDM_BACKEND(key, name, source) #name,
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
                                            NULL};
static const char *const average_names[] = {"samples", "ranks", NULL};
const tdm_field tdm__ddp_rows[] = {
    {FIELD_IN(ENUM, tdm_parallel_section, ddp, backend, "auto"), .names = backend_names, FLAGS(LOCAL),
     HELP(
         "backend that reduces gradients between ranks; auto: nccl on GPUs where it works and replicas have one stage, "
         "else shm, or gloo if the ranks are on several hosts",
         "进程间梯度通信的后端；auto：GPU 上 nccl 可用且每个副本只有一段时用 nccl，否则同一主机用 shm，多台主机用 gloo")},
    {FIELD_IN(TEXT, tdm_parallel_section, ddp, init_method, "env"), FLAGS(LOCAL),
     HELP("how ranks find each other: env, tcp://host:port or file:///path",
          "进程如何相互发现：env、tcp://host:port 或 file:///path")},
    {FIELD_IN(TEXT, tdm_parallel_section, ddp, interface, "null"), FLAGS(NULLABLE | LOCAL),
     HELP("network interface between hosts, by name (eth0) or address; null: the one that leads to rank 0",
          "主机之间使用的网络接口：名称（eth0）或地址；null：通向 0 号进程的接口")},
    {FIELD_IN(ENUM, tdm_parallel_section, ddp, average, "samples"), .names = average_names,
     HELP(
         "how the loss of a step is averaged; samples: over all samples that count, as in dp; ranks: over the means of "
         "the ranks, as DistributedDataParallel; they differ only if labels are ignored or classes have weights",
         "每步损失对什么取平均：samples 为所有计入的样本，同 dp；ranks 为各进程均值的平均，同 "
         "DistributedDataParallel；仅在有被忽略的标签或类别有权重时不同")},
    {FIELD_IN(FLOAT, tdm_parallel_section, ddp, bucket_cap_mb, "25"), RANGE(0, 1e6), FLAGS(OPEN_MIN), .unit = "MiB",
     HELP("size of a gradient bucket; buckets are reduced while backward runs", "反向传播期间按此大小分桶发送梯度")},
    {FIELD_IN(FLOAT, tdm_parallel_section, ddp, first_bucket_mb, "null"), RANGE(0, 1e6), FLAGS(NULLABLE | OPEN_MIN),
     .unit = "MiB",
     HELP("size of the first bucket, small so that communication starts early; null: 1 if bucket_cap_mb has its "
          "default, else bucket_cap_mb, as in PyTorch",
          "第一个桶的大小，较小则通信更早开始；null：bucket_cap_mb 为默认值时取 1，否则取 bucket_cap_mb，同 PyTorch")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, find_unused_parameters, "false"),
     HELP("allow layers that the loss does not depend on; their parameters have no gradient and stay as they are, in "
          "every mode",
          "允许与损失无关的层；其参数没有梯度，保持不变（所有模式）")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, static_graph, "false"),
     HELP("as in PyTorch; changes nothing, because the graph is the same in each step",
          "同 PyTorch；不起作用，因为计算图每步都相同")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, join, "false"),
     HELP(
         "use every sample once, in every mode, instead of filling up the last batch of an epoch: some ranks then have "
         "fewer samples in it, or none; in dp it is the last batch of DataParallel behind a DataLoader",
         "每个样本只用一次，不补齐每轮最后一批：届时部分进程样本较少或没有（所有模式）；此时 dp 的最后一批与 DataLoader 加 "
         "DataParallel 相同")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, broadcast_buffers, "true"),
     HELP("broadcast rank 0's batch-norm statistics to all ranks before each forward",
          "每次前向前把 0 号进程的批归一化统计量广播给所有进程")},
    {FIELD_IN(BOOL, tdm_parallel_section, ddp, check_reduction, "false"),
     HELP("compare the reduced gradients of all ranks before each update", "每次更新前核对各进程归约后的梯度")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, timeout, "10m"), FLAGS(NULLABLE | OPEN_MIN | LOCAL),
     .unit = "seconds",
     HELP("longest wait for another rank; null: as long as it takes, for use with a debugger",
          "等待其他进程的最长时间；null 表示不限，例如使用调试器时")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, heartbeat, "5s"), RANGE(1, 9.3e18), FLAGS(NULLABLE | LOCAL),
     .unit = "seconds",
     HELP("a rank that gives no sign of life for this long ends the job; null: never, for use with a debugger",
          "进程在此时间内没有心跳即结束任务；null 表示不检查，例如使用调试器时")},
    {FIELD_IN(DURATION, tdm_parallel_section, ddp, grace, "30s"), FLAGS(OPEN_MIN), .unit = "seconds",
     HELP("time that processes started by tandem have to stop when asked; then they are killed",
          "由 tandem 启动的进程收到停止请求后的宽限时间；超时则被强制结束")},
    {0},
};

static const char *const compression_names[] = {"none", "bf16", "fp16", "powersgd", NULL};
const tdm_field tdm__compress_rows[] = {
    {FIELD(ENUM, tdm_compress_section, type, "none"), .names = compression_names, FLAGS(MAIN),
     HELP(
         "how gradients are sent between ranks: as floats; rounded to 16 bits, half the bytes; powersgd: as two thin "
         "factors of each matrix; single and dp send nothing and have the same numbers",
         "进程间梯度的传送方式：none 为单精度；bf16、fp16 舍入为 16 位，字节减半；powersgd 把每个矩阵分解为两个窄因子；single 与 dp 不传送，数值相同")},
    {FIELD(INT, tdm_compress_section, rank, "1"), .types = BIT(TDM_COMPRESS_POWERSGD), RANGE(1, 1024),
     HELP("columns of a factor: more are more accurate and more bytes; PyTorch's matrix_approximation_rank",
          "因子的列数：越多越精确，字节也越多；即 PyTorch 的 matrix_approximation_rank")},
    {FIELD(INT, tdm_compress_section, start_step, "1000"), .types = BIT(TDM_COMPRESS_POWERSGD),
     RANGE(0, 9007199254740992.0), .unit = "steps",
     HELP("steps before compression begins; PyTorch's start_powerSGD_iter",
          "从第几步之后开始压缩；即 PyTorch 的 start_powerSGD_iter")},
    {FIELD(FLOAT, tdm_compress_section, min_rate, "2"), .types = BIT(TDM_COMPRESS_POWERSGD), RANGE(0, 1e9),
     FLAGS(OPEN_MIN),
     HELP("matrices whose factors are not smaller by this much are sent as they are; PyTorch's min_compression_rate",
          "因子不能缩小到此倍数的矩阵原样传送；即 PyTorch 的 min_compression_rate")},
    {FIELD(BOOL, tdm_compress_section, error_feedback, "true"), .types = BIT(TDM_COMPRESS_POWERSGD),
     HELP("add what compression has kept back to the next gradient", "把压缩丢下的部分加到下一步的梯度")},
    {FIELD(BOOL, tdm_compress_section, warm_start, "true"), .types = BIT(TDM_COMPRESS_POWERSGD),
     HELP("begin with the factors of the step before instead of drawn ones", "从上一步的因子出发，而不是随机抽取")},
    {FIELD(INT, tdm_compress_section, seed, "0"), .types = BIT(TDM_COMPRESS_POWERSGD), RANGE(0, 4294967295.0),
     HELP("seed of the first factors", "初始因子的随机种子")},
    {0},
};
