/* What `tandem plan` says about the options of ddp: what each does to the numbers of a training, and to the bytes
 * between devices. With a process for each device it shows all of them; in other modes those that count there, too, if
 * the job has set them. runtime/docs/ddp.md has the reasons. */
#include <stdio.h>

#include "runtime/train/plan/plan_memory.h"

typedef struct options_of {
    const tdm_plan *plan;
    const tdm_job *job;
    int replicas;
    bool is_ddp;
    tdm_text *text;     /* NULL: to `json` */
    tdm_json_out *json; /* NULL: to `text` */
    int rows;           /* so far */
} options_of;

static void add_head(options_of *o) {
    if (o->rows++ > 0 || o->text == NULL) return;
    tdm__text_printf(o->text, "\n%-32s %14s  what it does to numbers\n", "options of ddp", "bytes a step");
}

/* `bytes`: what the option adds to a step of all devices together. */
static void add(options_of *o, const char *key, const char *value, int64_t bytes, const char *numbers) {
    char both[64], count[32];
    add_head(o);
    if (o->text == NULL) {
        tdm__json_put(o->json, "{ option:%s value:%s bytes_per_step:%lld numbers:%s }", key, value, (long long)bytes,
                      numbers);
        return;
    }
    snprintf(both, sizeof(both), "%s: %s", key, value);
    snprintf(count, sizeof(count), bytes == 0 ? "%lld" : "%+lld", (long long)bytes);
    tdm__text_printf(o->text, "  %-30s %14s  %s\n", both, count, numbers);
}

static const char *yes(bool is_set) {
    return is_set ? "true" : "false";
}

static int64_t wire_of(const options_of *o, const tdm_job *job) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    const int64_t rows = (o->replicas - 1) * o->plan->options.rows * job->train.accumulate;
    return mode->wire_bytes != NULL ? mode->wire_bytes(o->plan, job, o->replicas, rows) : 0;
}

static void add_buckets(options_of *o) {
    const tdm_plan_options *of = &o->plan->options;
    const char *same = "none: it decides when a sum begins, not what it is";
    char value[32];
    if (!o->is_ddp) return;
    snprintf(value, sizeof(value), "%g", of->bucket_cap_mb);
    add(o, "bucket_cap_mb", value, 0, same);
    snprintf(value, sizeof(value), "%g", of->first_bucket_mb);
    add(o, "first_bucket_mb", value, 0, same);
}

static void add_graph(options_of *o) {
    const bool allows = o->job->parallel.ddp.find_unused_parameters;
    if (o->is_ddp || allows)
        add(o, "find_unused_parameters", yes(allows), 0,
            allows ? "none: parameters without a gradient stay as they are"
                   : "none: a layer that the loss does not depend on is refused");
    if (o->is_ddp)
        add(o, "static_graph", yes(o->job->parallel.ddp.static_graph), 0, "none: the graph is the same in each step");
}

static void add_compression(options_of *o) {
    static const char *const names[] = {"none", "bf16", "fp16", "powersgd"};
    const tdm_compress_section *compress = &o->job->parallel.ddp.compress;
    tdm_job plain = *o->job;
    char numbers[TDM_REMARK];
    if (!o->is_ddp && compress->type == TDM_COMPRESS_NONE) return;
    plain.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
    tdm__compression_text(o->job, numbers);
    add(o, "compress", names[compress->type], wire_of(o, o->job) - wire_of(o, &plain), numbers);
}

static void add_samples(options_of *o) {
    const bool joins = o->job->parallel.ddp.join, ranks = o->job->parallel.ddp.average == TDM_AVERAGE_RANKS;
    const char *last = "the last batch of an epoch is filled up with samples from its beginning";
    if (joins) last = "each sample counts once; in the last batch of an epoch replicas have fewer samples, or none";
    if (o->job->data.drop_last) last = "none: the last batch of an epoch is dropped";
    if (o->is_ddp || joins) add(o, "join", yes(joins), 0, last);
    if (o->is_ddp)
        add(o, "average", ranks ? "ranks" : "samples", 0,
            ranks ? "the loss is the mean of the ranks' means: another one where labels are ignored or weighted"
                  : "the loss is the mean over the samples of all ranks");
}

static void add_buffers(options_of *o) {
    const bool broadcasts = o->job->parallel.ddp.broadcast_buffers;
    const char *numbers = broadcasts ? "each step begins with rank 0's batch-norm statistics"
                                     : "each rank goes on with its own batch-norm statistics; rank 0's are saved";
    tdm_job plain = *o->job;
    if (!o->is_ddp) return;
    plain.parallel.ddp.broadcast_buffers = false;
    if (o->replicas == 1) numbers = "none: one rank";
    if (o->plan->buffer_bytes == 0) numbers = "none: the model has no buffers";
    add(o, "broadcast_buffers", yes(broadcasts), wire_of(o, o->job) - wire_of(o, &plain), numbers);
}

static void add_check(options_of *o) {
    const bool checks = o->job->parallel.ddp.check_reduction;
    tdm_job plain = *o->job;
    if (!o->is_ddp) return;
    plain.parallel.ddp.check_reduction = false;
    add(o, "check_reduction", yes(checks), wire_of(o, o->job) - wire_of(o, &plain),
        checks ? "none: a step ends the run if the ranks' sums differ" : "none: sums are not compared in each step");
}

static void add_all(options_of *o) {
    o->is_ddp = tdm_builtin_modes[o->job->parallel.mode]->process_per_device;
    if (!o->plan->options.training) return;
    add_buckets(o);
    add_graph(o);
    add_compression(o);
    add_samples(o);
    add_buffers(o);
    add_check(o);
}

void tdm__plan_print_options(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_text *text) {
    options_of of = {.plan = plan, .job = job, .replicas = replicas, .text = text};
    add_all(&of);
}

void tdm__plan_put_options(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_json_out *json) {
    options_of of = {.plan = plan, .job = job, .replicas = replicas, .json = json};
    tdm__json_put(json, "ddp_options:[");
    add_all(&of);
    tdm__json_put(json, "]");
}
