/* A plan run in memory full of NaN gives the bits of its graph, run layer by layer with memory for each value: nothing
 * is read before it was written, nothing is overwritten that is still wanted, and sums keep their order. */
#include "tests/plan/fused_kernels.h"
#include "tests/plan/plan_run.h"

enum {
    GRAPHS = 40,
    ROWS = 3,
    SEED = 7,
    ALL = TDM_EPILOGUE_BIAS | TDM_EPILOGUE_ADD | TDM_EPILOGUE_SUM_DX | TDM_EPILOGUE_RELU
};

/* Else nothing would be compared. */
static void check_is_of_interest(const interpreter *want, const plan_pass *pass) {
    const float *y = want->value[want->graph->output];
    double largest = 0;
    for (int64_t i = 0; i < pass->rows * tdm_graph_output_width(want->graph); i++)
        largest = fmax(largest, fabs((double)y[i]));
    CHECK(largest > 0 && isfinite(largest));
}

/* How many nodes have each epilogue; at 0, how many are made again. */
static void look(int *epilogues, const tdm_plan *plan) {
    for (int i = 0; i < plan->step_count; i++) epilogues[0] += plan->steps[i].kind == TDM_STEP_RECOMPUTE;
    for (int i = 0; i < plan->node_count; i++)
        for (unsigned bit = 1; bit <= ALL; bit *= 2) epilogues[bit] += tdm_has_epilogue(&plan->nodes[i].desc, bit);
}

/* Two micro-batches, the second with fewer rows. */
static void check_training(const tdm_graph *graph, tdm_plan_options options, uint64_t seed, int *epilogues) {
    interpreter want;
    plan_run run;
    batch part[2];
    options.accumulates = true;
    interpreter_open(&want, graph, options.kernels, options.freeze, ROWS, seed);
    batch_open(&part[0], graph, ROWS, true, seed + 1);
    batch_open(&part[1], graph, ROWS - 1, true, seed + 2);
    if (plan_run_open(&run, &want, &options, SEED, PLAN_POISON)) {
        for (int i = 0; i < 2; i++) {
            interpreter_run(&want, &part[i].pass);
            check_is_of_interest(&want, &part[i].pass);
            plan_run_pass(&run, &part[i].pass, i == 0);
            CHECK(plan_run_equals_reference(&run, &want, &part[i].pass));
        }
        look(epilogues, run.plan);
        plan_run_close(&run);
    }
    batch_close(&part[0]);
    batch_close(&part[1]);
    interpreter_close(&want);
}

static void check_predicting(const tdm_graph *graph, tdm_plan_options options, uint64_t seed, int *epilogues) {
    interpreter want;
    plan_run run;
    batch b;
    options.training = false;
    interpreter_open(&want, graph, options.kernels, options.freeze, ROWS, seed);
    batch_open(&b, graph, ROWS, false, seed + 3);
    if (plan_run_open(&run, &want, &options, SEED, PLAN_POISON)) {
        interpreter_run(&want, &b.pass);
        plan_run_pass(&run, &b.pass, true);
        CHECK(plan_run_equals_reference(&run, &want, &b.pass));
        look(epilogues, run.plan);
        plan_run_close(&run);
    }
    batch_close(&b);
    interpreter_close(&want);
}

/* The stages into which the graph is cut: up to three, as many as it can be cut into. */
static int stages_for(const tdm_graph *graph, const tdm_plan_options *options, uint64_t seed) {
    tdm_plan_options cut = *options;
    for (cut.stages = 1 + (int)(seed % 3); cut.stages > 1; cut.stages--) {
        tdm_plan *plan = NULL;
        const tdm_status status = tdm__plan_build(&plan, tdm_host_default(), graph, &cut);
        tdm__plan_free(plan);
        if (status == TDM_OK) break;
        CHECK_STATUS(status, TDM_E_CONFIG);
    }
    return cut.stages;
}

static void check_graphs(random_kind kind, uint64_t first, const tdm_kernel *const *kernels, int *epilogues) {
    for (uint64_t seed = first; seed < first + GRAPHS; seed++) {
        uint64_t state = seed;
        const int before = tdm_test_failures;
        tdm_graph *graph = random_graph(kind, 2 + draw(&state, 26), &state);
        REQUIRE(graph != NULL);
        tdm_plan_options options = plan_options(kernels);
        tdm_texts freeze;
        random_freeze(&freeze, graph, &state);
        options.freeze = &freeze;
        options.rows = ROWS;
        options.micro_batches = 2;
        check_training(graph, options, seed, epilogues);
        options.stages = stages_for(graph, &options, seed);
        if (options.stages > 1) check_training(graph, options, seed, epilogues);
        check_predicting(graph, options, seed, epilogues);
        tdm_graph_free(graph);
        if (tdm_test_failures == before) continue;
        fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
        return;
    }
}

TEST(reference_kernels) {
    int epilogues[ALL + 1] = {0};
    check_graphs(RANDOM_ALL, 1000, tdm_builtin_kernels, epilogues);
    check_graphs(RANDOM_SERIES, 4000, tdm_builtin_kernels, epilogues);
    check_graphs(RANDOM_INPUTS, 5000, tdm_builtin_kernels, epilogues);
    CHECK(epilogues[TDM_EPILOGUE_RELU] > 0);
}

/* Each rewrite comes to run, together with the others. */
TEST(kernels_that_do_every_epilogue) {
    int epilogues[ALL + 1] = {0};
    check_graphs(RANDOM_ALL, 2000, fused_kernels(), epilogues);
    check_graphs(RANDOM_RESIDUAL, 3000, fused_kernels(), epilogues);
    printf("       %d relu, %d sum, %d add, %d bias, %d again\n", epilogues[TDM_EPILOGUE_RELU],
           epilogues[TDM_EPILOGUE_SUM_DX], epilogues[TDM_EPILOGUE_ADD], epilogues[TDM_EPILOGUE_BIAS], epilogues[0]);
    CHECK(epilogues[TDM_EPILOGUE_RELU] > 50 && epilogues[TDM_EPILOGUE_SUM_DX] > 30);
    CHECK(epilogues[TDM_EPILOGUE_ADD] > 10 && epilogues[TDM_EPILOGUE_BIAS] > 3);
    CHECK(epilogues[0] > 50);
}

TEST_MAIN(RUN(reference_kernels); RUN(kernels_that_do_every_epilogue);)
