/* bench_comm.c - `tandem bench all_reduce` and the other collectives: nccl-tests' columns over processes (shm), threads
 * (local) or hosts.
 *
 * A size is that of the larger array: what a rank has of all ranks. algbw is bytes / time. busbw is what crosses a
 * rank's bus, 2(n-1)/n of it in all_reduce, and can be compared with the memory's speed for any n. Every element of one
 * result is checked. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/collectives.h"
#include "tools/launch/launch.h"
#include "tools/terminal/json.h"
#include "tools/terminal/log.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/term.h"

enum { TIMEOUT_MS = 60000, HEARTBEAT_MS = 5000 };
/* In the order of the flag's choices; then the modules that carry messages between hosts. */
enum { BACKEND_SHM, BACKEND_LOCAL, BACKEND_HOSTS };
#define CHOICE_BUILT_IN(name)
#define CHOICE_DEVICE_MODULE(name)
#define CHOICE_HOSTS_MODULE(name) "|" #name
#define TDM_BACKEND(key, name, source) CHOICE_##source(name)
const char bench_backends[] = "shm|local"
#include <tandem/sys/backends.def>
    ;
#undef TDM_BACKEND

typedef struct comm_bench {
    const tool *t;
    const collective *what;
    size_t min, max;
    int64_t iterations, warmup;
    int backend;
    bool plain, json;
} comm_bench;

/* The work of one rank: a process or a thread. */
typedef struct rank_work {
    const comm_bench *r;
    tdm_comm *comm;
    tdm_status status;
    tdm_error error;
} rank_work;

/* "64M", "1K", "8" */
static bool parse_bytes(const tool *t, const char *name, size_t *out) {
    const char *text = args_flag(t, name);
    if (!text) return true;
    char *end;
    long long n = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == text || n < 1 || n > (1LL << 40) >> shift || n << shift < 4 || end[shift ? 1 : 0]) {
        args_wrong(t, "`%s` must be a size of at least 4 bytes, such as 8, 4K, 64M or 1G, got `%s`", name, text);
        return false;
    }
    *out = (size_t)n << shift;
    return true;
}

/* Bytes of both arrays, each on lines of its own. */
static size_t room_of(const comm_bench *r, size_t world) {
    const size_t line = 64, bytes = r->max < world * sizeof(float) ? world * sizeof(float) : r->max;
    return 2 * ((bytes + line - 1) / line * line);
}

/* Prints the row, or keeps it in `rows`. */
static void show_row(json_t *rows, const collective *what, size_t bytes, double seconds, int world, int64_t wrong) {
    const double algbw = (double)bytes / seconds / 1e9;
    const double busbw = what->crossings == 0 ? algbw : algbw * what->crossings * (world - 1) / world;
    if (rows) {
        json_t *row = json_pack("{s:I, s:I, s:s, s:s, s:f, s:f, s:f, s:I}", "bytes", (json_int_t)bytes, "count",
                                (json_int_t)(bytes / sizeof(float)), "type", "float", "redop", what->op, "us",
                                seconds * 1e6, "algbw_gb_s", algbw, "busbw_gb_s", busbw, "wrong", (json_int_t)wrong);
        json_array_append_new(rows, row);
        return;
    }
    printf("%12zu %12zu %8s %7s %10.2f %8.2f %8.2f %7lld\n", bytes, bytes / 4, "float", what->op, seconds * 1e6, algbw,
           busbw, (long long)wrong);
    fflush(stdout);
}

static void print_head(const comm_bench *r, const tdm_comm *comm) {
    printf("# %s, %d ranks, backend %s, on memory of the %s; mean of %lld\n", r->what->name, tdm_comm_world(comm),
           tdm_comm_backend(comm), r->plain ? "caller" : "communicator", (long long)r->iterations);
    printf("#%11s %12s %8s %7s %10s %8s %8s %7s\n", "size", "count", "type", "redop", "time", "algbw", "busbw",
           "#wrong");
    printf("#%11s %12s %8s %7s %10s %8s %8s %7s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static tdm_status measure_size(const comm_bench *r, const comm_arrays *a, double *seconds, int64_t *wrong) {
    tdm_span tally = {wrong, 1, TDM_DTYPE_I64};
    double start = 0;
    collective_fill(a);
    tdm_status status = r->what->call(a);
    *wrong = status == TDM_OK ? collective_wrong(r->what, a) : 0;
    if (status == TDM_OK) status = tdm_comm_all_reduce(a->comm, tally, TDM_REDUCE_SUM);
    memset(a->first, 0, a->count * sizeof(float)); /* repeated sums of anything but zeros would overflow */
    for (int64_t i = 0; i < r->warmup + r->iterations && status == TDM_OK; i++) {
        if (i == r->warmup) {
            status = tdm_comm_barrier(a->comm);
            start = progress_now();
        }
        if (status == TDM_OK) status = r->what->call(a);
    }
    *seconds = (progress_now() - start) / (double)r->iterations;
    return status;
}

/* Whole numbers of elements, and of parts where there are parts: at least one. */
static comm_arrays arrays_of(const rank_work *w, float *memory, size_t bytes) {
    const size_t world = (size_t)tdm_comm_world(w->comm);
    comm_arrays a = {.comm = w->comm, .first = memory, .count = bytes / sizeof(float)};
    if (w->r->what->divides) a.count = a.count < world ? world : a.count / world * world;
    a.part = a.count / world;
    a.second = memory + room_of(w->r, world) / 2 / sizeof(float);
    return a;
}

static tdm_status measure_sizes(const rank_work *w, float *memory, json_t *rows, int64_t *all_wrong) {
    const bool shows = tdm_comm_rank(w->comm) == 0;
    tdm_status status = TDM_OK;
    if (shows && !rows) print_head(w->r, w->comm);
    for (size_t bytes = w->r->min; bytes <= w->r->max && status == TDM_OK; bytes *= 2) {
        const comm_arrays a = arrays_of(w, memory, bytes);
        double seconds;
        int64_t wrong;
        status = measure_size(w->r, &a, &seconds, &wrong);
        if (status == TDM_OK && shows)
            show_row(rows, w->r->what, a.count * sizeof(float), seconds, tdm_comm_world(w->comm), wrong);
        *all_wrong += wrong;
    }
    return status;
}

static tdm_status measure_all(rank_work *w) {
    const comm_bench *r = w->r;
    const size_t room = room_of(r, (size_t)tdm_comm_world(w->comm));
    void *memory = NULL;
    int64_t all_wrong = 0;
    json_auto_t *rows = tdm_comm_rank(w->comm) == 0 && r->json ? json_array() : NULL;
    tdm_status status = r->plain ? TDM_OK : tdm_comm_allocate(w->comm, room, &memory);
    if (r->plain) memory = memory_new(room, 1);
    if (status == TDM_OK) status = measure_sizes(w, memory, rows, &all_wrong);
    if (rows && status == TDM_OK)
        json_print(json_pack("{s:s, s:s, s:i, s:s, s:O}", "collective", r->what->name, "backend",
                             tdm_comm_backend(w->comm), "ranks", tdm_comm_world(w->comm), "memory",
                             r->plain ? "plain" : "communicator", "rows", rows),
                   stdout);
    if (r->plain) free(memory);
    return status == TDM_OK && all_wrong ? TDM_E_CHECK : status;
}

static void *thread_main(void *argument) {
    rank_work *w = argument;
    w->status = measure_all(w);
    w->error = *tdm_error_last();
    return NULL;
}

static int report_result(const rank_work *w) {
    tdm_error error = w->error;
    if (w->status == TDM_OK) return TDM_OK;
    if (w->status == TDM_E_CHECK) {
        term_line("tandem: error: some results are wrong");
        return TDM_E_CHECK;
    }
    error.status = w->status;
    return tell_error_of(&error);
}

static int over_threads(const comm_bench *r, int world) {
    FREED tdm_comm **ends = memory_new((size_t)world, sizeof *ends);
    FREED rank_work *work = memory_new((size_t)world, sizeof *work);
    FREED pthread_t *threads = memory_new((size_t)world, sizeof *threads);
    int started = 0, code = TDM_OK;
    tdm_status status = tdm_comm_open_threads(ends, world, &r->t->host, TIMEOUT_MS);
    if (status != TDM_OK) code = tell_error(status);
    for (; started < world && code == TDM_OK; started++) {
        work[started] = (rank_work){.r = r, .comm = ends[started]};
        if (pthread_create(&threads[started], NULL, thread_main, &work[started]) != 0) {
            term_line("tandem: error: cannot start thread %d", started);
            tdm_comm_abort(ends[0], "a thread could not be started");
            code = TDM_E_MEMORY;
            break;
        }
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < started && code == TDM_OK; i++) code = report_result(&work[i]);
    for (int i = 0; i < world && status == TDM_OK; i++) tdm_comm_close(ends[i]);
    return code;
}

static tdm_status open_shm(tdm_comm **out, const comm_bench *r, const tdm_launch_facts *facts) {
    int fd;
    tdm_status status = tdm_launch_meet(&fd, facts, &r->t->host, "env", TIMEOUT_MS, HEARTBEAT_MS);
    if (status != TDM_OK) return status;
    status = tdm_comm_open_shm(out, fd, facts->rank, facts->world, &r->t->host, TIMEOUT_MS);
    close(fd);
    return status;
}

static tdm_status open_ranks(tdm_comm **out, const comm_bench *r, const tdm_launch_facts *facts) {
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    if (r->backend == BACKEND_SHM) return open_shm(out, r, facts);
    options.host = &r->t->host;
    options.backend = args_flag(r->t, "--backend");
    options.timeout_ms = TIMEOUT_MS;
    return tdm_comm_open_hosts(out, facts, &options);
}

/* Runs as one of several ranks, which launch_ranks or another launcher has started. */
static int as_rank(const comm_bench *r, const tdm_launch_facts *facts) {
    rank_work w = {.r = r};
    tdm_status status = open_ranks(&w.comm, r, facts);
    if (status == TDM_OK) status = measure_all(&w);
    int code = TDM_OK;
    if (status == TDM_E_CHECK) {
        w.status = status;
        code = facts->rank == 0 ? report_result(&w) : TDM_E_CHECK;
    } else if (status != TDM_OK) {
        code = launch_report(r->t, facts, status);
    }
    tdm_comm_close(w.comm);
    return code;
}

int bench_comm(tool *t) {
    comm_bench r = {.t = t,
                    .what = collective_named(t->word[0]),
                    .min = 1024,
                    .max = 16 << 20,
                    .iterations = 20,
                    .warmup = 5,
                    .plain = args_flag(t, "--plain") != NULL,
                    .json = args_flag(t, "--json") != NULL};
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    int64_t ranks = 2;
    if (t->word_count > 1) return args_wrong(t, "`bench %s` takes no CONFIG, got `%s`", t->word[0], t->word[1]);
    if (!args_choice(t, "--backend", &r.backend) || !args_int(t, "--ranks", 1, &ranks) ||
        !bench_counts(t, &r.iterations, &r.warmup) || !parse_bytes(t, "--min", &r.min) ||
        !parse_bytes(t, "--max", &r.max)) {
        return TDM_E_USAGE;
    }
    if (ranks > 256) return args_wrong(t, "`--ranks` must be at most 256, got %lld", (long long)ranks);
    if (r.min > r.max) return args_wrong(t, "`--min` is larger than `--max`");
    tdm_status status = tdm_launch_from_env(&facts);
    if (status != TDM_OK) return tell_error(status);
    int code = launch_join(&facts);
    if (code != TDM_OK) return code;
    log_set_rank(facts.rank, facts.world);
    if (launch_is_rank(&facts) || facts.world > 1) return as_rank(&r, &facts);
    return r.backend == BACKEND_LOCAL || ranks == 1 ? over_threads(&r, (int)ranks) : launch_ranks(t, (int)ranks);
}
