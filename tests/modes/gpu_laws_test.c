/* The laws of the modes on CUDA devices: the same bits from single, dp and ddp, the CPU's numbers to rounding, and
 * checkpoints that cross. On a machine with one GPU all replicas share it. Run twice by ctest: on the emulated module,
 * and, labelled gpu, on the GPUs of this machine. */
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "law.h"
#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

static int device_count;

/* CUDA must not be touched by the process that forks the ranks. */
static int count_devices(char *why, size_t bytes) {
    int pipes[2];
    if (pipe(pipes) != 0) exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        const tdm_module *module = NULL;
        tdm_module_report report = {0};
        int count = 0;
        if (tdm__module_find(&module, tdm_host_default(), "cuda", NULL, &report) != TDM_OK) _exit(1);
        if (module != NULL && module->device->count(&count) != TDM_OK) count = 0;
        ssize_t n = write(pipes[1], &count, sizeof(count));
        n += write(pipes[1], report.text, sizeof(report.text));
        _exit(n > 0 ? 0 : 1);
    }
    int count = 0, code = 0;
    char text[512] = "";
    if (read(pipes[0], &count, sizeof(count)) < 0 || read(pipes[0], text, sizeof(text)) < 0) exit(1);
    close(pipes[0]), close(pipes[1]);
    (void)waitpid(pid, &code, 0);
    snprintf(why, bytes, "%s", text);
    return code == 0 ? count : 0;
}

static void set_cuda(tdm_job *job, int mode, int devices) {
    job->parallel.device = TDM_DEVICE_CUDA;
    job->parallel.mode = mode;
    job->parallel.device_ids.count = devices;
    job->parallel.allow_shared_device = devices > device_count;
    for (int i = 0; i < devices; i++) job->parallel.device_ids.item[i] = i % device_count;
}

static law_result run_as(tdm_job *job, const tdm_graph *graph, int mode, int devices) {
    set_cuda(job, mode, devices);
    return law_run_ok(job, graph);
}

static void check_near(const law_result *a, const law_result *b, double relative) {
    CHECK_INT(a->steps, b->steps);
    for (int64_t i = 0; i < a->steps; i++) CHECK_NEAR(a->loss[i], b->loss[i], relative * fabs(b->loss[i]));
}

/* Fewer samples than on the CPU: an emulated GPU is slow. Batches of an epoch: two whole ones of 2 devices and a
 * smaller one, or one whole one of 3 devices and a smaller one. */
enum { STEPS = 5 };
static void small_job(tdm_job *job) {
    law_job(job);
    job->data.train.samples = 26;
    job->data.eval.samples = 11;
    job->train.steps = STEPS;
}

TEST(modes_are_equal) {
    for (int n = 1; n <= 3; n += TDM_EVERY(2)) {
        tdm_job job;
        small_job(&job);
        tdm_graph *graph = law_graph(1, 1);
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        CHECK_INT(single.steps, STEPS);
        CHECK(single.params[0] != '\0');
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        tdm_graph_free(graph);
    }
}

/* Devices that reach each other add slices of all gradients, others add pairs of them (gpu_laws_apart). Five: a tree. */
TEST(many_replicas) {
    tdm_graph *graph = law_graph(1, 1);
    for (int type = TDM_COMPRESS_NONE; type <= TDM_COMPRESS_BF16; type += TDM_COMPRESS_BF16 - TDM_COMPRESS_NONE) {
        tdm_job job;
        small_job(&job);
        job.train.steps = 3;
        job.train.per_device = 2;
        job.data.train.samples = 24; /* batches of 10, 10 and 4: the last leaves one device none */
        job.parallel.ddp.join = true;
        job.parallel.ddp.compress.type = type;
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 5), ddp = run_as(&job, graph, TDM_MODE_DDP, 5);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, 5);
        job.parallel.dp.update = TDM_DP_UPDATE_ALL;
        law_result all = run_as(&job, graph, TDM_MODE_DP, 5);
        law_check_same(&single, &ddp);
        law_check_same(&single, &dp);
        CHECK_TEXT(all.params, single.params);
    }
    tdm_graph_free(graph);
}

static void check_modes(tdm_graph *graph) {
    for (int precision = TDM_F32; precision <= TDM_BF16; precision++) {
        tdm_job job;
        small_job(&job);
        job.train.precision = precision;
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        job.train.precision = TDM_F32;
        job.parallel.device = TDM_DEVICE_CPU;
        job.parallel.mode = TDM_MODE_SINGLE;
        job.parallel.device_ids.item[1] = 1;
        law_result cpu = law_run_ok(&job, graph);
        check_near(&single, &cpu, precision == TDM_F32 ? 1e-5 : 2e-2);
    }
    tdm_graph_free(graph);
}

TEST(series_and_several_inputs_are_equal_in_all_modes) {
    check_modes(law_series());
    check_modes(law_inputs());
}

static law_result run_stages(tdm_job *job, const tdm_graph *graph, int mode, int replicas, int stages) {
    job->parallel.stages = stages;
    law_result result = run_as(job, graph, mode, replicas * stages);
    job->parallel.stages = 1;
    return result;
}

/* parallel.sync_batchnorm; NCCL gathers the same blocks, and its sums of gradients are near. */
TEST(synchronised_statistics_are_equal_in_all_modes) {
    tdm_job job;
    small_job(&job);
    job.parallel.sync_batchnorm = true;
    job.train.accumulate = 2;
    tdm_graph *graph = law_graph(1, 1);
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 3);
    job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
    law_result own = run_as(&job, graph, TDM_MODE_DP, 3);
    job.parallel.ddp.backend = TDM_BACKEND_SHM;
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 3);
    law_check_same(&single, &dp);
    law_check_same(&single, &own);
    law_check_same(&single, &ddp);
    law_result cut = run_stages(&job, graph, TDM_MODE_SINGLE, 3, 2);
    law_check_same(&single, &cut);
    cut = run_stages(&job, graph, TDM_MODE_DDP, 3, 2);
    law_check_same(&single, &cut);
    if (device_count >= 3) {
        job.parallel.ddp.backend = TDM_BACKEND_NCCL;
        law_result nccl = run_as(&job, graph, TDM_MODE_DDP, 3);
        check_near(&nccl, &ddp, 1e-5);
    }
    job.parallel.sync_batchnorm = false;
    law_result apart = run_as(&job, graph, TDM_MODE_SINGLE, 3);
    CHECK(strcmp(single.params, apart.params) != 0);
    tdm_graph_free(graph);
}

TEST(it_repeats) {
    tdm_job job;
    small_job(&job);
    tdm_graph *graph = law_graph(1, 1);
    law_result a = run_as(&job, graph, TDM_MODE_SINGLE, 1), b = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    law_check_same(&a, &b);
    job.seed = 8;
    law_result c = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    CHECK(strcmp(a.params, c.params) != 0); /* so that equality above means something */
    tdm_graph_free(graph);
}

TEST(graphs_change_nothing) {
    tdm_job job;
    small_job(&job);
    job.train.accumulate = 2;
    tdm_graph *graph = law_graph(1, 1);
    law_result captured = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    setenv("TANDEM_CUDA_GRAPHS", "0", 1);
    law_result plain = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    unsetenv("TANDEM_CUDA_GRAPHS");
    law_check_same(&captured, &plain);
    tdm_graph_free(graph);
}

/* A replica over several devices has the bits of one device with as many micro-batches. */
TEST(stages) {
    tdm_graph *graph = law_graph(1, 1);
    for (int precision = TDM_F32; precision <= TDM_BF16; precision += TDM_BF16 - TDM_F32) {
        tdm_job job;
        small_job(&job);
        job.train.precision = precision;
        job.train.accumulate = 3;
        job.train.clip_grad_norm = 0.05;
        job.train.ema_decay = 0.75;
        law_result one = run_as(&job, graph, TDM_MODE_SINGLE, 2);
        law_result three = run_stages(&job, graph, TDM_MODE_SINGLE, 2, 3);
        law_result ddp = run_stages(&job, graph, TDM_MODE_DDP, 2, 2);
        law_check_same(&one, &three);
        law_check_same(&one, &ddp);
        job.parallel.ddp.compress.type = TDM_COMPRESS_BF16;
        job.parallel.ddp.join = true;
        one = run_as(&job, graph, TDM_MODE_SINGLE, 3);
        three = run_stages(&job, graph, TDM_MODE_SINGLE, 3, 2);
        ddp = run_stages(&job, graph, TDM_MODE_DDP, 3, 2);
        law_check_same(&one, &three);
        law_check_same(&one, &ddp);
        job.optimizer.type = TDM_LARS; /* norms of parameters */
        job.optimizer.lr = 4;
        job.optimizer.momentum = 0.9;
        one = run_as(&job, graph, TDM_MODE_SINGLE, 2);
        three = run_stages(&job, graph, TDM_MODE_DDP, 2, 3);
        law_check_same(&one, &three);
    }
    tdm_graph_free(graph);
}

/* Each stage has a communicator of its own. With two ranks a sum has one order only, so NCCL's bits are those of shm. */
TEST(nccl_reduces_each_stage) {
    if (device_count < 4) SKIP_TEST("NCCL wants a device for each stage of each rank");
    tdm_graph *graph = law_graph(1, 1);
    for (int i = 0; i < 2; i++) {
        tdm_job job;
        small_job(&job);
        job.train.accumulate = 3;
        job.train.clip_grad_norm = 0.05;
        job.parallel.sync_batchnorm = i == 0;
        job.parallel.ddp.bucket_cap_mb = 0.001;
        job.parallel.ddp.join = true;
        if (i == 1) job.parallel.ddp.compress.type = TDM_COMPRESS_BF16;
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result shm = run_stages(&job, graph, TDM_MODE_DDP, 2, 2);
        job.parallel.ddp.backend = TDM_BACKEND_NCCL;
        law_result nccl = run_stages(&job, graph, TDM_MODE_DDP, 2, 2);
        law_check_same(&nccl, &shm);
    }
    tdm_graph_free(graph);
}

TEST(nccl_gives_the_losses_of_shm) {
    if (device_count < 2) SKIP_TEST("NCCL wants a device for each rank");
    tdm_job job;
    small_job(&job);
    job.train.accumulate = 2;
    job.parallel.ddp.bucket_cap_mb = 0.001;
    tdm_graph *graph = law_graph(1, 1);
    job.parallel.ddp.backend = TDM_BACKEND_SHM;
    law_result shm = run_as(&job, graph, TDM_MODE_DDP, 2);
    job.parallel.ddp.backend = TDM_BACKEND_NCCL;
    law_result nccl = run_as(&job, graph, TDM_MODE_DDP, 2);
    check_near(&nccl, &shm, 1e-5);
    job.parallel.ddp.check_reduction = true;
    law_result checked = run_as(&job, graph, TDM_MODE_DDP, 2);
    check_near(&checked, &nccl, 1e-5);
    tdm_graph_free(graph);
}

/* Rounded on the device or on the host, the bits are the same; NCCL rounds its sums as it goes. PowerSGD is the host's.
 */
TEST(compressed_gradients) {
    static const int types[] = {TDM_COMPRESS_BF16, TDM_COMPRESS_FP16};
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    small_job(&job);
    job.optimizer.lr = 1e-3;
    job.train.accumulate = 2;
    job.parallel.ddp.bucket_cap_mb = 0.001;
    for (int i = 0; i < 2; i++) {
        job.parallel.ddp.compress.type = types[i];
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2), dp = run_as(&job, graph, TDM_MODE_DP, 2);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        if (device_count < 2) continue;
        job.parallel.ddp.backend = TDM_BACKEND_NCCL;
        law_result nccl = run_as(&job, graph, TDM_MODE_DDP, 2), again = run_as(&job, graph, TDM_MODE_DDP, 2);
        law_check_same(&nccl, &again);
        check_near(&nccl, &ddp, 1e-2);
    }
    job.parallel.ddp.backend = TDM_BACKEND_AUTO;
    job.parallel.ddp.compress.type = TDM_COMPRESS_POWERSGD;
    job.parallel.ddp.compress.start_step = 2;
    job.parallel.ddp.compress.rank = 2;
    law_result cuda = run_as(&job, graph, TDM_MODE_DDP, 2), in_turn = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result threads = run_as(&job, graph, TDM_MODE_DP, 2);
    law_check_same(&cuda, &in_turn);
    law_check_same(&cuda, &threads);
    job.parallel.device = TDM_DEVICE_CPU;
    law_result cpu = law_run_ok(&job, graph);
    check_near(&cuda, &cpu, 1e-3);
    job.parallel.device = TDM_DEVICE_CUDA;
    job.parallel.dp.update = TDM_DP_UPDATE_ALL;
    job.parallel.sync_batchnorm = true;
    threads = run_as(&job, graph, TDM_MODE_DP, 2);
    in_turn = run_stages(&job, graph, TDM_MODE_SINGLE, 2, 2);
    CHECK_TEXT(threads.params, in_turn.params);
    tdm_graph_free(graph);
}

/* The last batch of an epoch has two rows: with three ranks one has none. */
TEST(uneven_batches) {
    tdm_graph *graph = law_graph(1, 1);
    for (int i = 0; i < 4; i++) {
        const int n = 2 + i % 2;
        tdm_job job;
        small_job(&job);
        job.data.train.samples = 12 * n + 2;
        job.parallel.sync_batchnorm = i >= 2;
        job.parallel.ddp.join = true;
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n), dp = run_as(&job, graph, TDM_MODE_DP, n);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        if (device_count < n) continue;
        job.parallel.ddp.backend = TDM_BACKEND_NCCL;
        law_result nccl = run_as(&job, graph, TDM_MODE_DDP, n);
        check_near(&nccl, &ddp, 1e-4);
    }
    tdm_graph_free(graph);
}

TEST(the_cpus_numbers) {
    static const int optimizers[] = {TDM_SGD, TDM_ADAM, TDM_LARS};
    for (int i = 0; i < 3; i++) {
        tdm_job job;
        small_job(&job);
        job.optimizer.type = optimizers[i];
        job.optimizer.momentum = optimizers[i] == TDM_ADAM ? 0 : 0.9;
        job.optimizer.lr = optimizers[i] == TDM_LARS ? 1 : 1e-3;
        job.train.clip_grad_norm = 1.0;
        tdm_graph *graph =
            law_graph(0, 1); /* no bias in front of batch norm: Adam makes steps of rounding noise there */
        law_result cuda = run_as(&job, graph, TDM_MODE_SINGLE, 1);
        job.parallel.device = TDM_DEVICE_CPU;
        law_result cpu = law_run_ok(&job, graph);
        check_near(&cuda, &cpu, 1e-5);
        CHECK_NEAR(cuda.eval_loss, cpu.eval_loss, 1e-4 * cpu.eval_loss);
        tdm_graph_free(graph);
    }
}

TEST(variants_of_dp) {
    tdm_job job;
    small_job(&job);
    job.train.accumulate = 2;
    tdm_graph *graph = law_graph(1, 1);
    law_result usual = run_as(&job, graph, TDM_MODE_DP, 2);
    job.parallel.dp.loss = TDM_DP_LOSS_REPLICA;
    law_result own = run_as(&job, graph, TDM_MODE_DP, 2);
    law_check_same(&usual, &own);
    job.parallel.dp.update = TDM_DP_UPDATE_ALL;
    law_result all = run_as(&job, graph, TDM_MODE_DP, 2);
    CHECK_TEXT(all.params, usual.params);
    job.parallel.dp.loss = TDM_DP_LOSS_GATHERED;
    job.parallel.dp.update = TDM_DP_UPDATE_ROOT;
    job.parallel.dp.output_device = device_count > 1 ? 1 : 0;
    law_result elsewhere = run_as(&job, graph, TDM_MODE_DP, 2);
    law_check_same(&usual, &elsewhere);
    tdm_graph_free(graph);
}

/* The emulated libraries round as the real ones: ten bits of a factor. */
TEST(tf32_is_near_f32) {
    tdm_job job;
    small_job(&job);
    job.optimizer.lr = 1e-3;
    tdm_graph *graph = law_graph(1, 1);
    law_result f32 = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    job.train.precision = TDM_TF32;
    law_result tf32 = run_as(&job, graph, TDM_MODE_SINGLE, 1), dp = run_as(&job, graph, TDM_MODE_DP, 1);
    check_near(&tf32, &f32, 2e-2);
    law_check_same(&tf32, &dp);
    tdm_graph_free(graph);
}

/* As torch.autocast: activations of 16 bits, and every law that holds in f32. */
TEST(bf16) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    small_job(&job);
    job.optimizer.lr = 1e-3;
    law_result f32 = run_as(&job, graph, TDM_MODE_SINGLE, 1);
    job.train.precision = TDM_BF16;
    for (int n = 1; n <= 3; n++) {
        job.parallel.ddp.backend = TDM_BACKEND_SHM;
        job.train.accumulate = n == 2 ? 2 : 1;
        law_result single = run_as(&job, graph, TDM_MODE_SINGLE, n);
        law_result dp = run_as(&job, graph, TDM_MODE_DP, n);
        law_result ddp = run_as(&job, graph, TDM_MODE_DDP, n);
        law_check_same(&single, &dp);
        law_check_same(&single, &ddp);
        if (n == 1) check_near(&single, &f32, 5e-2);
        if (n == 1) CHECK(strcmp(single.params, f32.params) != 0);
    }
    tdm_graph_free(graph);
}

static tdm_graph *graph_for_glyphs(void) {
    tdm_graph *g = NULL;
    tdm_value x, y;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){1, 12, 13}, &x));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv", &x, 1, (tdm_attr[]){{"out", "8", {0}}, {"kernel", "3", {0}}}, 2, &y));
    CHECK_OK(tdm_graph_add(g, "flatten", "flat", &y, 1, NULL, 0, &y));
    CHECK_OK(tdm_graph_add(g, "linear", "fc1", &y, 1, (tdm_attr[]){{"out", "10", {0}}}, 1, &y));
    CHECK_OK(tdm_graph_finish(g, y));
    return g;
}

/* Samples that stay on the device, and samples that come with every batch; floats and bytes. */
TEST(resident_samples_change_nothing) {
    for (int i = 0; i < 2; i++) {
        tdm_job job;
        small_job(&job);
        if (i == 1) job.data.train.format = job.data.eval.format = TDM_DATA_GLYPHS;
        job.data.transform.to_float = true;
        tdm_graph *graph = i == 1 ? graph_for_glyphs() : law_graph(1, 1);
        for (int n = 1; n <= 2; n++) {
            job.data.resident = TDM_RESIDENT_ALWAYS;
            law_result always = run_as(&job, graph, TDM_MODE_DP, n);
            job.data.resident = TDM_RESIDENT_NEVER;
            law_result never = run_as(&job, graph, TDM_MODE_DP, n);
            law_check_same(&always, &never);
            job.data.workers = 0;
            law_result alone = run_as(&job, graph, TDM_MODE_DP, n);
            law_check_same(&alone, &never);
        }
        tdm_graph_free(graph);
    }
}

/* Two steps here, the others there: as all on the CPU, to rounding. */
static void crossing(int first, int second, int precision, double relative) {
    char folder[256];
    test_folder_make(folder);
    tdm_job job;
    small_job(&job);
    job.optimizer.lr = 1e-3;
    tdm_graph *graph = law_graph(0, 1);
    set_cuda(&job, TDM_MODE_SINGLE, 1);
    job.parallel.device = first;
    job.train.precision = first == TDM_DEVICE_CUDA ? precision : TDM_F32;
    law_result straight = law_run_ok(&job, graph);
    job.run.dir = folder;
    job.checkpoint.resume = "auto";
    job.train.steps = 2;
    (void)law_run_ok(&job, graph);
    job.train.steps = STEPS;
    job.parallel.device = second;
    job.train.precision = second == TDM_DEVICE_CUDA ? precision : TDM_F32;
    law_result end = law_run_ok(&job, graph);
    CHECK_INT(end.steps, STEPS);
    for (int i = 2; i < STEPS; i++) CHECK_NEAR(end.loss[i], straight.loss[i], relative * straight.loss[i]);
    if (first == second) CHECK_TEXT(end.params, straight.params);
    tdm_graph_free(graph);
    test_folder_remove(folder);
}

/* They come as floats, and never from the device's memory. */
TEST(mixed_samples) {
    tdm_job job;
    tdm_graph *graph = law_mixing(&job);
    law_result single = run_as(&job, graph, TDM_MODE_SINGLE, 2);
    law_result dp = run_as(&job, graph, TDM_MODE_DP, 2);
    job.parallel.ddp.backend = TDM_BACKEND_SHM;
    law_result ddp = run_as(&job, graph, TDM_MODE_DDP, 2);
    law_check_same(&single, &dp);
    law_check_same(&single, &ddp);
    job.parallel.device = TDM_DEVICE_CPU;
    job.parallel.mode = TDM_MODE_SINGLE;
    law_result cpu = law_run_ok(&job, graph);
    check_near(&single, &cpu, 1e-4);
    tdm_graph_free(graph);
}

TEST(checkpoints_cross) {
    static const struct {
        int precision;
        double relative;
    } wishes[] = {{TDM_F32, 1e-5}, {TDM_TF32, 5e-3}, {TDM_BF16, 3e-2}};
    for (int i = 0; i < 3;
         i += TDM_EVERY(2)) { /* where channels lie last, weights do on the device, and nowhere else */
        crossing(TDM_DEVICE_CUDA, TDM_DEVICE_CUDA, wishes[i].precision, wishes[i].relative);
        crossing(TDM_DEVICE_CUDA, TDM_DEVICE_CPU, wishes[i].precision, wishes[i].relative);
        crossing(TDM_DEVICE_CPU, TDM_DEVICE_CUDA, wishes[i].precision, wishes[i].relative);
    }
}

/* A convolution in front of a pooling: a plan without backward adds its bias behind that. */
static tdm_graph *pooled_graph(void) {
    tdm_graph *g = NULL;
    tdm_value v;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 3, (const int64_t[]){3, 8, 8}, &v));
    CHECK_OK(tdm_graph_add(g, "conv2d", "conv", &v, 1, (tdm_attr[]){{"out", "16", {0}}, {"kernel", "3", {0}}}, 2, &v));
    CHECK_OK(tdm_graph_add(g, "relu", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "maxpool2d", NULL, &v, 1, (tdm_attr[]){{"kernel", "2", {0}}}, 1, &v));
    CHECK_OK(tdm_graph_add(g, "flatten", NULL, &v, 1, NULL, 0, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc", &v, 1, (tdm_attr[]){{"out", "5", {0}}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

TEST(what_only_predicts_has_the_same_bits) {
    tdm_graph *graph = pooled_graph();
    for (int precision = TDM_F32; precision <= TDM_BF16; precision++) {
        char folder[256];
        test_folder_make(folder);
        tdm_job job;
        small_job(&job);
        set_cuda(&job, TDM_MODE_SINGLE, 1);
        job.train.precision = precision;
        job.run.dir = folder;
        law_result trained = law_run_ok(&job, graph);
        job.run.dir = NULL;
        job.weights = folder;
        law_result evaluated = law_evaluate(&job, graph);
        CHECK_INT(evaluated.status, TDM_OK);
        CHECK(evaluated.eval_loss == trained.eval_loss && evaluated.accuracy == trained.accuracy);
        CHECK(evaluated.eval_loss > 0);
        test_folder_remove(folder);
    }
    tdm_graph_free(graph);
}

static double averaged(tdm_job *job, const tdm_graph *graph, int mode, int devices, int64_t stop) {
    char folder[256];
    test_folder_make(folder);
    set_cuda(job, mode, devices);
    job->run.dir = folder;
    job->checkpoint.resume = "auto";
    job->train.steps = stop;
    (void)law_run_ok(job, graph);
    job->train.steps = STEPS;
    law_result result = law_run_ok(job, graph);
    job->run.dir = NULL;
    job->checkpoint.resume = "never";
    job->weights = folder;
    if (stop == STEPS) result = law_evaluate(job, graph);
    job->weights = NULL;
    test_folder_remove(folder);
    return result.eval_loss;
}

/* The average is the same in every mode, over an interruption, and as it comes back from a checkpoint. */
TEST(averages) {
    tdm_graph *graph = law_graph(1, 1);
    for (int precision = TDM_F32; precision <= TDM_BF16; precision += TDM_BF16 - TDM_F32) {
        tdm_job job;
        small_job(&job);
        job.train.precision = precision;
        job.train.ema_decay = 0.75;
        const double want = averaged(&job, graph, TDM_MODE_SINGLE, 2, 2);
        CHECK(averaged(&job, graph, TDM_MODE_SINGLE, 2, STEPS) == want);
        CHECK(averaged(&job, graph, TDM_MODE_DP, 2, 3) == want);
        CHECK(averaged(&job, graph, TDM_MODE_DDP, 2, 4) == want);
        job.eval.weights = TDM_WEIGHTS_MODEL;
        CHECK(averaged(&job, graph, TDM_MODE_SINGLE, 2, 2) != want);
    }
    tdm_graph_free(graph);
}

TEST(a_device_that_is_not_there) {
    tdm_job job;
    small_job(&job);
    tdm_graph *graph = law_graph(0, 0);
    set_cuda(&job, TDM_MODE_SINGLE, 1);
    job.parallel.device_ids.item[0] = 63;
    law_result result = law_run(&job, graph);
    CHECK_INT(result.status, TDM_E_DEVICE);
    CHECK_HAS(result.message, "there is no cuda:63");
    tdm_graph_free(graph);
}

static void find_devices(void) {
    char why[512];
    device_count = count_devices(why, sizeof(why));
    if (device_count == 0) SKIP_PROGRAM(why);
}

TEST_MAIN(find_devices(); RUN(modes_are_equal); RUN(many_replicas);
          RUN(series_and_several_inputs_are_equal_in_all_modes); RUN(synchronised_statistics_are_equal_in_all_modes);
          RUN(it_repeats); RUN(graphs_change_nothing); RUN(stages); RUN(nccl_gives_the_losses_of_shm);
          RUN(nccl_reduces_each_stage); RUN(compressed_gradients); RUN(uneven_batches); RUN(the_cpus_numbers);
          RUN(variants_of_dp); RUN(tf32_is_near_f32); RUN(bf16); RUN(resident_samples_change_nothing);
          RUN(mixed_samples); RUN(checkpoints_cross); RUN(what_only_predicts_has_the_same_bits); RUN(averages);
          RUN(a_device_that_is_not_there);)
