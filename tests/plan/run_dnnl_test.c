/* The same with oneDNN's kernels, which want other layouts and do more than their op: what memory held before makes no
 * difference, rewrites change no bit, and results are those of the reference but for rounding. */
#include <tandem/job.h>

#include "runtime/module/module.h"
#include "tests/plan/plan_run.h"

enum { ROWS = 3, SEED = 7, MAX_KERNELS = 128 };

/* ---- kernels that do less than they can ---- */

static tdm_compute compute;
static unsigned left_out; /* epilogues that `fewer` do not offer */

/* The n-th kernel for the op: what a copy of it is a copy of. */
static const tdm_kernel *original(const char *op, int n) {
    const tdm_kernel *const *kernel = compute.kernels;
    while (strcmp((*kernel)->op, op) != 0 || n-- > 0) kernel++;
    return *kernel;
}

static bool fits_with_less(const tdm_kernel *kernel, const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const bool fits = kernel->fits(desc, fit);
    fit->epilogue &= ~left_out;
    return fits;
}

static bool fits_first(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    return fits_with_less(original(desc->op, 0), desc, fit);
}

static bool fits_second(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    return fits_with_less(original(desc->op, 1), desc, fit);
}

static const tdm_kernel *const *fewer(unsigned epilogues) {
    static tdm_kernel copy[MAX_KERNELS];
    static const tdm_kernel *list[MAX_KERNELS + 1];
    int count = 0;
    left_out = epilogues;
    for (; compute.kernels[count] != NULL && count < MAX_KERNELS; count++) {
        const tdm_kernel *kernel = compute.kernels[count];
        copy[count] = *kernel;
        if (kernel->fits != NULL) copy[count].fits = kernel == original(kernel->op, 0) ? fits_first : fits_second;
        list[count] = &copy[count];
    }
    CHECK(compute.kernels[count] == NULL);
    list[count] = NULL;
    return list;
}

static void open_kernels(void) {
    if (compute.kernels != NULL) return;
    const tdm_compute_options wish = {.device = TDM_DEVICE_CPU, .kernels = TDM_KERNELS_AUTO};
    if (tdm__compute_open(&compute, tdm_host_default(), &wish) != TDM_OK || !compute.report.usable)
        SKIP_PROGRAM(compute.report.text);
}

/* ---- two plans of a graph ---- */

typedef struct {
    const tdm_kernel *const *kernels;
    int filling;
} setting;

/* Both must give the same bits; counted is what the first plan has of `epilogue`. */
static void check_same(const tdm_graph *graph, const tdm_texts *freeze, uint64_t seed, const setting *with,
                       const setting *other, unsigned epilogue, int *counted) {
    interpreter like;
    plan_run a, b;
    batch rows;
    interpreter_open(&like, graph, tdm_builtin_kernels, freeze, ROWS, seed);
    batch_open(&rows, graph, ROWS, true, seed + 1);
    tdm_plan_options options = plan_options(with->kernels);
    options.rows = ROWS;
    options.freeze = freeze;
    const bool opened = plan_run_open(&a, &like, &options, SEED, with->filling);
    options.kernels = other->kernels;
    if (opened && plan_run_open(&b, &like, &options, SEED, other->filling)) {
        plan_run_pass(&a, &rows.pass, true);
        plan_run_pass(&b, &rows.pass, true);
        CHECK(plan_run_equals(&a, &b, &rows.pass));
        for (int i = 0; i < a.plan->node_count; i++)
            *counted += (a.plan->nodes[i].desc.epilogue & epilogue) == epilogue;
        plan_run_close(&b);
    }
    if (opened) plan_run_close(&a);
    batch_close(&rows);
    interpreter_close(&like);
}

static int check_graphs(random_kind kind, uint64_t first, int graphs, const setting *with, const setting *other,
                        unsigned epilogue) {
    int counted = 0;
    for (uint64_t seed = first; seed < first + (uint64_t)graphs; seed++) {
        uint64_t state = seed;
        const int before = tdm_test_failures;
        tdm_graph *graph = random_graph(kind, 8 + draw(&state, 20), &state);
        if (graph == NULL) return counted;
        tdm_texts freeze;
        random_freeze(&freeze, graph, &state);
        check_same(graph, &freeze, seed, with, other, epilogue, &counted);
        tdm_graph_free(graph);
        if (tdm_test_failures == before) continue;
        fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
        return counted;
    }
    return counted;
}

TEST(what_memory_held_makes_no_difference) {
    open_kernels();
    const setting poisoned = {compute.kernels, PLAN_POISON}, zeroed = {compute.kernels, PLAN_ZEROS};
    const int relus = check_graphs(RANDOM_ALL, 3000, 20, &poisoned, &zeroed, TDM_EPILOGUE_RELU);
    check_graphs(RANDOM_SERIES, 7000, 20, &poisoned, &zeroed, TDM_EPILOGUE_RELU);
    check_graphs(RANDOM_INPUTS, 8000, 20, &poisoned, &zeroed, TDM_EPILOGUE_RELU);
    printf("       %d relus taken in\n", relus);
    CHECK(relus > 10);
}

TEST(rewrites_change_no_bit) {
    open_kernels();
    const setting all = {compute.kernels, PLAN_POISON};
    const setting none = {fewer(TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU), PLAN_POISON};
    const int relus = check_graphs(RANDOM_ALL, 4000, 20, &all, &none, TDM_EPILOGUE_RELU);
    printf("       %d relus taken in\n", relus);
    CHECK(relus > 10);
}

TEST(batch_norm_add_and_relu_in_one_changes_no_bit) {
    open_kernels();
    const unsigned both = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    const setting all = {compute.kernels, PLAN_POISON}, apart = {fewer(TDM_EPILOGUE_ADD), PLAN_POISON};
    const int blocks = check_graphs(RANDOM_RESIDUAL, 5000, 120, &all, &apart, both);
    printf("       %d ends of blocks in one\n", blocks);
    CHECK(blocks > 10);
}

/* ---- the reference ---- */

/* oneDNN sums in float, in an order of its own; batch norm makes differences larger where a channel varies little. */
static const double tolerance = 1e-4;

static void check_near(random_kind kind, uint64_t seed) {
    uint64_t state = seed;
    interpreter want;
    plan_run run;
    batch rows;
    tdm_graph *graph = random_graph(kind, 4 + draw(&state, 12), &state);
    REQUIRE(graph != NULL);
    interpreter_open(&want, graph, tdm_builtin_kernels, NULL, ROWS, seed);
    batch_open(&rows, graph, ROWS, true, seed + 1);
    tdm_plan_options options = plan_options(compute.kernels);
    options.rows = ROWS;
    if (plan_run_open(&run, &want, &options, SEED, PLAN_POISON)) {
        interpreter_run(&want, &rows.pass);
        plan_run_pass(&run, &rows.pass, true);
        CHECK(plan_run_near_reference(&run, &want, &rows.pass, tolerance, kind == RANDOM_SMOOTH));
        plan_run_close(&run);
    }
    batch_close(&rows);
    interpreter_close(&want);
    tdm_graph_free(graph);
}

/* Gradients only without kinks: where a rounding moves a number over 0 they differ, rightly. */
TEST(results_are_those_of_the_reference) {
    open_kernels();
    for (uint64_t seed = 6000; seed < 6015; seed++) {
        const int before = tdm_test_failures;
        check_near(RANDOM_SMOOTH, seed);
        check_near(RANDOM_ALL, seed);
        check_near(RANDOM_SERIES, seed);
        check_near(RANDOM_INPUTS, seed);
        if (tdm_test_failures != before) fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
    }
    tdm__compute_close(&compute, tdm_host_default());
}

TEST_MAIN(RUN(what_memory_held_makes_no_difference); RUN(rewrites_change_no_bit);
          RUN(batch_norm_add_and_relu_in_one_changes_no_bit); RUN(results_are_those_of_the_reference);)
