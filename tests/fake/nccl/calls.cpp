/* The fake libnccl.so.2: NCCL's functions, its script, and what it does not forgive.
 *
 * Communicators are non-blocking where the config says so: a call answers ncclInProgress, its work is put on the stream
 * when it has been asked for the state often enough, and whoever calls anything else meanwhile is stopped at once. So
 * is who uses a communicator that is gone, or aborts one while another thread is in it. */
#include <cuda_emulated.h>

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "fake_nccl.h"
#include "work.h"

using namespace fake_nccl;

struct ncclComm {
    std::shared_ptr<member> who;
    bool blocking = true;
    int device = 0, inside = 0;
    long calls = 0;
    ncclResult_t state = ncclSuccess;
    std::function<ncclResult_t()> rest; /* of the call in progress: asked until it is not ncclInProgress */
    int polls = 0;                      /* still to be answered with ncclInProgress */
    bool finalized = false, revoked = false;
    uint64_t splits = 0;
    cudaStream_t stream = nullptr; /* the last that work was put on */
    std::string error;
};

void fake_nccl::die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fake NCCL: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/* ---- the script ---- */

namespace {

struct script {
    int version = 23007, pending = 0, hang_init = -2;
    struct {
        int rank = -1;
        long call = 0; /* 0: none */
    } fail, refuse, hang;
};

struct state {
    std::mutex lock;
    script knobs;
    std::set<ncclComm_t> live;
    std::atomic<long> aborts{0}, revokes{0};
    long ids = 0;
};

long number(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text != nullptr ? strtol(text, nullptr, 10) : otherwise;
}

script from_environment() {
    script s;
    s.version = static_cast<int>(number("FAKE_NCCL_VERSION", s.version));
    s.pending = static_cast<int>(number("FAKE_NCCL_PENDING", 0));
    s.hang_init = static_cast<int>(number("FAKE_NCCL_HANG_INIT", -2));
    s.fail.call = number("FAKE_NCCL_FAIL_AT", 0);
    s.refuse.call = number("FAKE_NCCL_REFUSE_AT", 0);
    s.hang.call = number("FAKE_NCCL_HANG_AT", 0);
    return s;
}

/* Never destroyed, as threads may be in it to the end; in the library's own memory, as a library whose version is
 * refused is closed after its first call. */
state &all() {
    alignas(state) static unsigned char room[sizeof(state)];
    static state *one = [] {
        auto *s = new (room) state;
        s->knobs = from_environment();
        return s;
    }();
    return *one;
}

template <class When> bool hits(const When &when, const ncclComm &c) {
    return when.call != 0 && c.calls == when.call && (when.rank < 0 || when.rank == c.who->rank);
}

/* ---- one call at a time ---- */

/* A thread in NCCL, on one communicator. The lock is held only at its ends, as in NCCL nothing would be. */
class visit {
  public:
    visit(ncclComm_t visited, const char *function, bool state_only = false) : comm(visited) {
        const std::lock_guard<std::mutex> guard(all().lock);
        if (all().live.count(comm) == 0) die("%s: this communicator does not exist", function);
        if (comm->inside++ > 0) die("%s: another thread is in this communicator", function);
        if (!state_only && comm->state == ncclInProgress) die("%s while the last call is in progress", function);
    }
    ~visit() {
        const std::lock_guard<std::mutex> guard(all().lock);
        comm->inside--;
    }
    visit(const visit &) = delete;
    visit &operator=(const visit &) = delete;

  private:
    ncclComm_t comm;
};

ncclResult_t refuse(ncclComm_t comm, ncclResult_t result, const std::string &why) {
    comm->error = why;
    if (result != ncclInProgress) comm->state = result;
    return result;
}

/* The rest of a call: at once where that blocks, else when the state has been asked for. */
ncclResult_t begin(ncclComm_t comm, std::function<ncclResult_t()> rest) {
    comm->rest = std::move(rest);
    comm->polls = all().knobs.pending;
    if (!comm->blocking && comm->polls > 0) return comm->state = ncclInProgress;
    comm->state = comm->rest();
    if (comm->state != ncclInProgress) comm->rest = nullptr;
    if (comm->blocking && comm->state == ncclInProgress)
        die("a blocking communicator has to wait: there are none here");
    return comm->state;
}

/* ---- making ---- */

bool all_here(const member &m) {
    for (int r = 0; r < m.world; r++) {
        if ((*m.at)->rank[r].come.load() == 0) return false;
    }
    return true;
}

/* As NCCL has it, without the boot of the kernel: what plays hosts here runs on one. */
uint64_t host() {
    char name[256] = "";
    const char *id = getenv("NCCL_HOSTID");
    if (id == nullptr) gethostname(name, sizeof(name) - 1);
    return std::hash<std::string>{}(id != nullptr ? id : name);
}

ncclResult_t check_devices(ncclComm_t comm) {
    const member &m = *comm->who;
    const char *many = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (all().knobs.version >= 23003 && many != nullptr && strcmp(many, "1") == 0) return ncclSuccess;
    for (int r = 0; r < m.world; r++) {
        const seat &other = (*m.at)->rank[r];
        if (r == m.rank || other.device.load() != comm->device || other.host.load() != host()) continue;
        if (all().knobs.version >= 23003)
            return refuse(comm, ncclInvalidUsage, "Multiple Ranks are using the same GPU/Partition. Set "
                                                  "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.");
        return refuse(comm, ncclInvalidUsage,
                      "Duplicate GPU detected : rank " + std::to_string(m.rank) + " and rank " + std::to_string(r) +
                          " both on CUDA device " + std::to_string(1000 * comm->device));
    }
    return ncclSuccess;
}

ncclResult_t join(ncclComm_t comm) {
    const member &m = *comm->who;
    if (all().knobs.hang_init == m.rank || !all_here(m)) return ncclInProgress;
    m.at->remove_name();
    return check_devices(comm);
}

ncclResult_t make(ncclComm_t *out, const std::string &name, int world, int rank, bool blocking) {
    auto at = place::open(name);
    if (at == nullptr) return ncclSystemError;
    auto *comm = new ncclComm;
    comm->who = std::make_shared<member>();
    comm->who->at = at;
    comm->who->rank = rank;
    comm->who->world = world;
    comm->blocking = blocking;
    int index = 0;
    if (cudaGetDevice(&index) != cudaSuccess ||
        cudaDeviceGetAttribute(&comm->device, cudaDevAttrPciBusId, index) != cudaSuccess)
        comm->device = -1;
    (*at)->rank[rank].device.store(comm->device);
    (*at)->rank[rank].host.store(host());
    if ((*at)->rank[rank].come.exchange(1) != 0) die("rank %d of %s has come already", rank, name.c_str());
    {
        const std::lock_guard<std::mutex> guard(all().lock);
        all().live.insert(comm);
    }
    *out = comm;
    return begin(comm, [comm] { return join(comm); });
}

/* What NCCL does under the name of commDestroySync: kernels of a graph that have not started need the communicator's
 * memory, so it stays until the graph is gone, aborted or not. */
void wait_for_graphs(const ncclComm &comm) {
    while (comm.who->graphs.load() > 0) usleep(100);
}

void give_back(ncclComm_t comm) {
    {
        const std::lock_guard<std::mutex> guard(all().lock);
        all().live.erase(comm);
    }
    if (!all_here(*comm->who)) comm->who->at->remove_name();
    delete comm;
}

/* The child, once all ranks of the parent have said what they want. */
ncclResult_t split(ncclComm_t comm, ncclComm_t *made) {
    const member &m = *comm->who;
    const unsigned half = comm->splits % 2;
    int world = 0, rank = 0;
    for (int r = 0; r < m.world; r++) {
        if ((*m.at)->rank[r].splits.load() < comm->splits) return ncclInProgress;
    }
    const seat &own = (*m.at)->rank[m.rank];
    if (own.color[half] == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    for (int r = 0; r < m.world; r++) {
        const seat &other = (*m.at)->rank[r];
        if (other.color[half] != own.color[half]) continue;
        world++;
        rank += other.key[half] < own.key[half] || (other.key[half] == own.key[half] && r < m.rank);
    }
    const std::string name = m.at->name + "." + std::to_string(comm->splits) + "." + std::to_string(own.color[half]);
    const ncclResult_t result = make(made, name, world, rank, comm->blocking);
    return result == ncclInProgress ? ncclSuccess : result;
}

/* ---- groups ---- */

struct group {
    int depth = 0;
    struct part {
        std::vector<operation> operations;
        cudaStream_t stream;
    };
    std::vector<std::pair<ncclComm_t, part>> parts;
    std::vector<ncclComm_t> aborted;
    ncclResult_t result = ncclSuccess;
};
thread_local group open_group;

bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

ncclResult_t enqueue(ncclComm_t comm, const group::part &part, bool never) {
    const bool captured = is_captured(part.stream);
    comm->stream = part.stream;
    std::vector<const void *> touches;
    for (const operation &o : part.operations) touches.insert(touches.end(), {o.send, o.receive});
    const cudaError_t error = cuda_emulated::enqueue_steps(
        part.stream, make_work(comm->who, part.operations, captured, never), std::move(touches));
    if (error == cudaSuccess) return ncclSuccess;
    return refuse(comm, ncclUnhandledCudaError, std::string("Cuda failure '") + cudaGetErrorString(error) + "'");
}

ncclResult_t submit(ncclComm_t comm, const group::part &part) {
    const visit inside(comm, "a collective");
    const script &knobs = all().knobs;
    comm->calls++;
    if (comm->state != ncclSuccess) return comm->state;
    if (comm->revoked) return refuse(comm, ncclInvalidUsage, "the communicator is revoked");
    if (cuda_emulated_fails_now()) return refuse(comm, ncclUnhandledCudaError, "Cuda failure 999 'unknown error'");
    if (hits(knobs.refuse, *comm)) return refuse(comm, ncclSystemError, "Call to socket failed: \nno more of them");
    const bool never = hits(knobs.hang, *comm) || hits(knobs.fail, *comm);
    const bool fails = hits(knobs.fail, *comm);
    const ncclResult_t result = begin(comm, [comm, part, never] { return enqueue(comm, part, never); });
    if (fails && result == ncclSuccess)
        refuse(comm, ncclRemoteError, "socket progress: Connection closed by remote peer");
    return result;
}

ncclResult_t start(ncclComm_t comm, cudaStream_t stream, const operation &what) {
    if (type_bytes(what.type) == 0 || what.op > ncclAvg) die("type %d, operator %d are not played", what.type, what.op);
    if (open_group.depth == 0) return submit(comm, {{what}, stream});
    for (auto &one : open_group.parts) {
        if (one.first != comm) continue;
        one.second.operations.push_back(what);
        return ncclSuccess;
    }
    open_group.parts.push_back({comm, {{what}, stream}});
    return ncclSuccess;
}

} // namespace

/* ---- NCCL: the library ---- */

ncclResult_t ncclGetVersion(int *version) {
    *version = all().knobs.version;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const std::lock_guard<std::mutex> guard(all().lock);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "fake-nccl-%ld-%ld", static_cast<long>(getpid()), ++all().ids);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                        "internal error - please report this issue to the NCCL developers",
                                        "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                        "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return static_cast<unsigned>(result) < sizeof texts / sizeof texts[0] ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) {
    return comm != nullptr ? comm->error.c_str() : "";
}

/* ---- NCCL: communicators ---- */

static bool blocks(const ncclConfig_t *config) {
    const char *variable = getenv("NCCL_COMM_BLOCKING"); /* which wins */
    if (variable != nullptr) return strcmp(variable, "0") != 0;
    return config == nullptr || config->blocking != 0;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
    if (nranks < 1 || nranks > max_ranks || rank < 0 || rank >= nranks) return ncclInvalidArgument;
    if (config->magic != 0xcafebeef) return ncclInvalidArgument;
    if (cuda_emulated_fails_now()) return ncclUnhandledCudaError;
    return make(comm, id.internal, nranks, rank, blocks(config));
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *) {
    const visit inside(comm, "ncclCommSplit");
    *made = nullptr;
    seat &own = (*comm->who->at)->rank[comm->who->rank];
    comm->splits++;
    own.color[comm->splits % 2] = color;
    own.key[comm->splits % 2] = key;
    own.splits.store(comm->splits);
    return begin(comm, [comm, made] { return split(comm, made); });
}

/* All ranks together, and after all their work; graphs with calls in them must be gone. */
static ncclResult_t finalize(ncclComm_t comm) {
    member &m = *comm->who;
    if (m.under_way.load() > 0) {
        (void)cudaStreamQuery(comm->stream);
        (void)cudaGetLastError();
    }
    if (m.under_way.load() > 0 || m.graphs.load() > 0) return ncclInProgress;
    (*m.at)->rank[m.rank].finalized.store(1);
    for (int r = 0; r < m.world; r++) {
        if ((*m.at)->rank[r].finalized.load() == 0) return ncclInProgress;
    }
    comm->finalized = true;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    const visit inside(comm, "ncclCommFinalize");
    if (comm->revoked) return refuse(comm, ncclInvalidUsage, "the communicator is revoked");
    return begin(comm, [comm] { return finalize(comm); });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    {
        const visit inside(comm, "ncclCommDestroy");
        if (!comm->finalized) die("ncclCommDestroy without ncclCommFinalize");
    }
    give_back(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    {
        const visit inside(comm, "ncclCommAbort", true);
        comm->who->stopped = true;
        all().aborts++;
    }
    if (open_group.depth > 0) {
        open_group.aborted.push_back(comm);
        return ncclSuccess;
    }
    wait_for_graphs(*comm);
    give_back(comm);
    return ncclSuccess;
}

extern "C" CUDA_EMULATED_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags); /* newer than the header */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
    const visit inside(comm, "ncclCommRevoke", true);
    if (flags != 0) return ncclInvalidArgument;
    all().revokes++;
    comm->who->stopped = true;
    comm->revoked = true;
    return begin(comm, [] { return ncclSuccess; });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    const visit inside(comm, "ncclCommGetAsyncError", true);
    if (comm->state == ncclInProgress) {
        if (comm->polls > 0) {
            comm->polls--;
        } else {
            comm->state = comm->rest();
            if (comm->state != ncclInProgress) comm->rest = nullptr;
        }
    }
    *error = comm->state;
    return ncclSuccess;
}

/* ---- NCCL: calls ---- */

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    return start(comm, stream, {kind::all_reduce, send, receive, count, type, op, -1});
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    return start(comm, stream, {kind::broadcast, send, receive, count, type, ncclSum, root});
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
    return start(comm, stream, {kind::reduce, send, receive, count, type, op, root});
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return start(comm, stream, {kind::all_gather, send, receive, count, type, ncclSum, -1});
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    return start(comm, stream, {kind::reduce_scatter, send, receive, count, type, op, -1});
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return start(comm, stream, {kind::send, send, nullptr, count, type, ncclSum, peer});
}

ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return start(comm, stream, {kind::receive, nullptr, receive, count, type, ncclSum, peer});
}

ncclResult_t ncclGroupStart() {
    if (open_group.depth++ == 0) open_group.result = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    group &g = open_group;
    if (g.depth == 0) return ncclInvalidUsage;
    if (--g.depth > 0) return ncclSuccess;
    const auto parts = std::move(g.parts);
    const auto aborted = std::move(g.aborted);
    g.parts.clear();
    g.aborted.clear();
    for (const auto &one : parts) {
        const ncclResult_t result = submit(one.first, one.second);
        if (result != ncclSuccess) g.result = result;
    }
    for (ncclComm_t comm : aborted) wait_for_graphs(*comm);
    for (ncclComm_t comm : aborted) give_back(comm);
    return g.result;
}

/* ---- the script ---- */

template <class Change> static void set(Change change) {
    const std::lock_guard<std::mutex> guard(all().lock);
    change(all().knobs);
}

void fake_nccl_version(int version) {
    set([&](script &s) { s.version = version; });
}

void fake_nccl_pending(int polls) {
    set([&](script &s) { s.pending = polls; });
}

void fake_nccl_fail_at(int rank, long call) {
    set([&](script &s) { s.fail.rank = rank, s.fail.call = call; });
}

void fake_nccl_refuse_at(int rank, long call) {
    set([&](script &s) { s.refuse.rank = rank, s.refuse.call = call; });
}

void fake_nccl_hang_at(int rank, long call) {
    set([&](script &s) { s.hang.rank = rank, s.hang.call = call; });
}

void fake_nccl_hang_init(int rank) {
    set([&](script &s) { s.hang_init = rank; });
}

void fake_nccl_reset() {
    set([&](script &s) { s = from_environment(); });
}

int fake_nccl_live() {
    const std::lock_guard<std::mutex> guard(all().lock);
    return static_cast<int>(all().live.size());
}

long fake_nccl_aborts() {
    return all().aborts;
}

long fake_nccl_revokes() {
    return all().revokes;
}
