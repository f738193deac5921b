/* Where the ranks of one communicator meet: a file in /dev/shm that each of them maps, whether they are threads or
 * processes. Its name is gone as soon as all have come. */
#ifndef FAKE_NCCL_SHARED_H
#define FAKE_NCCL_SHARED_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fake_nccl {

enum { max_ranks = 16, piece_bytes = 256 * 1024, message_bytes = 32 * 1024 };

/* Pieces are double: what is put down in round n is read before the reader says "here" for round n + 1. */
struct seat {
    std::atomic<uint64_t> here; /* the last round this rank has put a piece down for */
    std::atomic<int> come, device, finalized;
    std::atomic<uint64_t> host;   /* hash of what tells its host from others */
    std::atomic<uint64_t> splits; /* the last ncclCommSplit it called */
    int color[2], key[2];
    bool captured[2]; /* the piece comes from a graph */
    alignas(64) unsigned char piece[2][piece_bytes];
};

struct channel { /* from one rank to another; counters only grow */
    std::atomic<uint64_t> filled, taken;
    alignas(64) unsigned char piece[2][message_bytes];
};

struct file {
    seat rank[max_ranks];
    channel message[max_ranks][max_ranks];
};

/* One rank's mapping of the file; unmapped with its last user, which may be queued work. */
class place {
  public:
    static std::shared_ptr<place> open(const std::string &name);
    ~place();
    place(const place &) = delete;
    place &operator=(const place &) = delete;
    void remove_name();
    file *operator->() const {
        return shared;
    }
    const std::string name;

  private:
    place(const std::string &its_name, file *its_file) : name(its_name), shared(its_file) {}
    file *shared;
};

} // namespace fake_nccl
#endif
