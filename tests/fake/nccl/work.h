/* A collective, a message or a group of messages as work on a stream of the emulated CUDA: asked again until it is
 * done, it never waits itself. */
#ifndef FAKE_NCCL_WORK_H
#define FAKE_NCCL_WORK_H

#include <functional>
#include <memory>
#include <vector>

#include <nccl.h>

#include "shared.h"

namespace fake_nccl {

enum class kind { all_reduce, broadcast, reduce, all_gather, reduce_scatter, send, receive };

struct operation {
    kind what;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int rank; /* root or peer */
};

/* What a rank's communicator and its work share; the work may outlive the communicator. */
struct member {
    std::shared_ptr<place> at;
    int rank = 0, world = 0;
    uint64_t round = 0;
    std::atomic<bool> stopped{false}; /* aborted or revoked: kernels leave */
    std::atomic<long> under_way{0};   /* work queued and not done */
    std::atomic<long> graphs{0};      /* captured work that may still be run */
};

/* Captured work is run again and again; `never` ends only when the member is stopped. */
std::function<bool()> make_work(const std::shared_ptr<member> &who, std::vector<operation> operations, bool captured,
                                bool never);

size_t type_bytes(ncclDataType_t type);

/* Ends the program: NCCL leaves undefined what was done. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace fake_nccl
#endif
