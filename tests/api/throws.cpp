// What tandem/tandem.h says of exceptions. One that leaves a callback passes through the library, whose frames can be
// unwound, to the program. Behind on_event the run can be asked and closed, and its folder is free; behind another
// callback it is in its call from then on, and says so. One that the callback catches stops the run.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

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

tdm_status loss(void *, const tdm_outputs *, double *, float *) {
    throw std::runtime_error("from a loss");
}

tdm_status open_run(tdm_run **run, watch *w, const char *folder = nullptr, const tdm_own_loss *own = nullptr) {
    tdm_graph *graph = nullptr;
    tdm_value x = 0;
    const int64_t width = 4;
    const tdm_attr out = {"out", "3", {nullptr, 0, 0}};
    static tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = w;
    options.loss = own;
    (void)tdm_job_init(&job);
    job.data.train.format = TDM_DATA_SYNTHETIC;
    job.data.train.samples = 8;
    job.train.steps = 3;
    job.train.per_device = 2;
    job.checkpoint.resume = "never";
    job.run.dir = folder;
    tdm_status status = tdm_graph_new(&graph, nullptr);
    if (status == TDM_OK) status = tdm_graph_input(graph, 1, &width, &x);
    if (status == TDM_OK) status = tdm_graph_add(graph, "linear", "fc", &x, 1, &out, 1, &x);
    if (status == TDM_OK) status = tdm_graph_finish(graph, x);
    if (status == TDM_OK) status = tdm_run_open(run, &job, graph, &options);
    tdm_graph_free(graph);
    return status;
}

// Does the exception come out of training?
bool arrives(tdm_run *run, const char *what) {
    try {
        (void)tdm_run_train(run);
    } catch (const std::runtime_error &error) {
        return std::strcmp(error.what(), what) == 0;
    }
    return false;
}

bool says(const char *text) {
    return std::strstr(tdm_error_message(), text) != nullptr;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    watch catches = {true, nullptr}, throws = {false, nullptr};
    tdm_run *run = nullptr;
    if (open_run(&run, &catches) != TDM_OK) return failed("open");
    if (tdm_run_train(run) != TDM_E_STOPPED || !catches.caught) return failed("a callback that catches");
    if (tdm_run_step(run, 0) != TDM_OK) return failed("after it");
    tdm_run_close(run);

    const std::string folder = std::string(argv[1]) + "/run";
    for (int round = 0; round < 2; round++) { // again: the folder is not locked
        float bias[3];
        if (open_run(&run, &throws, folder.c_str()) != TDM_OK) return failed("open");
        if (!arrives(run, "from on_event")) return failed("the exception did not arrive");
        if (tdm_run_train(run) != TDM_E_USAGE || !says("an exception has left a callback of tdm_run_train"))
            return failed("train after an exception");
        if (tdm_run_read(run, "fc.bias", bias, sizeof(bias)) != TDM_OK) return failed("read after an exception");
        (void)tdm_run_step(nullptr, 0);
        tdm_run_close(run);
        if (says("tdm_run_close")) return failed("close after an exception");
    }

    const tdm_own_loss own = {sizeof(own), "thrower", loss, nullptr};
    if (open_run(&run, &catches, nullptr, &own) != TDM_OK) return failed("open");
    if (!arrives(run, "from a loss")) return failed("the exception of a loss did not arrive");
    if (tdm_run_train(run) != TDM_E_USAGE || !says("if an exception has left it, open another run"))
        return failed("train after an exception of a loss");
    tdm_run_close(run);
    if (!says("tdm_run_close")) return failed("close after an exception of a loss");
    return 0;
}
