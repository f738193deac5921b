/* cmd_bench.c - `tandem bench step|op|COLLECTIVE|data`: measures one part at a time. */
#include "tools/bench/bench.h"

static int run(tool *t) {
    static const tool_part parts[] = {
        {"step", bench_step},           {"op", bench_op},           {"all_reduce", bench_comm}, {"reduce", bench_comm},
        {"broadcast", bench_comm},      {"all_gather", bench_comm}, {"gather", bench_comm},     {"scatter", bench_comm},
        {"reduce_scatter", bench_comm}, {"all_to_all", bench_comm}, {"data", bench_data},       {NULL, NULL}};
    return args_part(t, parts);
}

const tool_verb verb_bench = {
    "bench",
    "step CONFIG | op KIND [attribute=value ...] | all_reduce | reduce | broadcast | all_gather | gather | "
    "scatter | reduce_scatter | all_to_all | data CONFIG",
    "speed of one part: a step, an op, a collective, the loader",
    "step        whole steps of a job in its mode: ms per step, samples/s, phases\n"
    "op          forward and backward of one layer, each called again and again on the same tensors\n"
    "COLLECTIVE  all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter or\n"
    "            all_to_all between ranks, in nccl-tests' columns; results are checked\n"
    "data        the loader alone: the samples/s that it delivers\n\n"
    "examples:\n"
    "  tandem bench step job.yaml --iterations 50\n"
    "  tandem bench op conv2d out=128 kernel=3 padding=1 --input 64x16x16 --batch 32\n"
    "  tandem bench all_reduce --ranks 4 --max 64M --json\n"
    "  tandem bench data job.yaml data.workers=4",
    {{"--iterations", "N", "measured iterations (20; data: 200)"},
     {"--warmup", "N", "iterations before the measured ones (5)"},
     {"--mode", "single|dp|ddp", "step: how devices share the work (parallel.mode)"},
     {"--input", "SHAPE", "op: shape of one sample, such as 64x16x16 or 512"},
     {"--batch", "N", "op: samples per batch (32)"},
     {"--threads", "N", "op: threads of the device (1)"},
     {"--processor", NULL, "op: times of the thread on the processor, for busy machines"},
     {"--kernels", "auto|ref", "op: which kernels (auto)"},
     {"--ranks", "N", "COLLECTIVE: processes, or threads with --backend local (2)"},
     {"--backend", bench_backends, "COLLECTIVE: between processes, threads, hosts (shm)"},
     {"--min", "BYTES", "COLLECTIVE: smallest size, such as 8 or 4K (1K)"},
     {"--max", "BYTES", "COLLECTIVE: largest size, of what one rank has of all (16M)"},
     {"--plain", NULL, "COLLECTIVE: use ordinary memory, not the communicator's"},
     {"--json", NULL, "print JSON"}},
    run,
    {1, 2, true}};
