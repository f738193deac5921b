// What tandem/tandem.h says of exceptions. One that leaves a callback passes through the library, whose frames can be
// unwound, to the program; the run is in its call from then on, and says so. One that the callback catches stops the run.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <tandem/tandem.h>

namespace {

struct watch {
    bool catches;
    std::exception_ptr caught;
};

int on_event(const tdm_event *event, void *user) {
    watch *w = static_cast<watch *>(user);
    if (event->kind != TDM_EVENT_STEP) return 0;
    if (!w->catches) throw std::runtime_error("from on_event");
    try {
        throw std::runtime_error("from on_event");
    } catch (...) {
        w->caught = std::current_exception();
        return 1;
    }
}

int failed(const char *what) {
    std::fprintf(stderr, "throws: %s: %s\n", what, tdm_error_message());
    return 1;
}

tdm_status open_run(tdm_run **run, watch *w) {
    tdm_graph *graph = nullptr;
    tdm_value x = 0;
    const int64_t width = 4;
    const tdm_attr out = {"out", "3", {nullptr, 0, 0}};
    static tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = w;
    (void)tdm_job_init(&job);
    job.data.train.format = TDM_DATA_SYNTHETIC;
    job.data.train.samples = 8;
    job.train.steps = 3;
    job.train.per_device = 2;
    job.checkpoint.resume = "never";
    tdm_status status = tdm_graph_new(&graph, nullptr);
    if (status == TDM_OK) status = tdm_graph_input(graph, 1, &width, &x);
    if (status == TDM_OK) status = tdm_graph_add(graph, "linear", "fc", &x, 1, &out, 1, &x);
    if (status == TDM_OK) status = tdm_graph_finish(graph, x);
    if (status == TDM_OK) status = tdm_run_open(run, &job, graph, &options);
    tdm_graph_free(graph);
    return status;
}

} // namespace

int main() {
    watch catches = {true, nullptr}, throws = {false, nullptr};
    tdm_run *run = nullptr;
    bool thrown = false;
    if (open_run(&run, &catches) != TDM_OK) return failed("open");
    if (tdm_run_train(run) != TDM_E_STOPPED || !catches.caught) return failed("a callback that catches");
    if (tdm_run_step(run, 0) != TDM_OK) return failed("after it");
    tdm_run_close(run);

    if (open_run(&run, &throws) != TDM_OK) return failed("open");
    try {
        (void)tdm_run_train(run);
    } catch (const std::runtime_error &error) {
        thrown = std::strcmp(error.what(), "from on_event") == 0;
    }
    if (!thrown) return failed("the exception did not arrive");
    if (tdm_run_train(run) != TDM_E_USAGE) return failed("train after an exception");
    (void)tdm_run_step(nullptr, 0);
    tdm_run_close(run);
    if (std::strstr(tdm_error_message(), "tdm_run_close") == nullptr) return failed("close after an exception");
    return 0;
}
