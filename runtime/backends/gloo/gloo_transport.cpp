/* Messages over Gloo's TCP transport. Gloo reports failures as exceptions; none of them leaves this file. */
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "runtime/backends/gloo/gloo_sockets.h"
#include "runtime/backends/gloo/gloo_thread.h"
#include "runtime/backends/gloo/gloo_transport.h"
#include "runtime/backends/kit/module_host.h"

namespace {

using gloo::transport::UnboundBuffer;
using gloo::transport::tcp::Address;

constexpr size_t address_bytes = Address::kMaxByteSize;
constexpr size_t length_bytes = sizeof(uint32_t);
/* Gloo's waits end all connections at their deadline. Tandem has deadlines of its own, and ends waits by `abort`. */
constexpr std::chrono::milliseconds no_deadline = std::chrono::hours(24 * 365 * 10);

class pending;
class batch;

struct transport : tdm_transport {
    std::unique_ptr<gloo_thread> thread; // must go last: it ends Gloo's thread, to which its memory is known
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::transport::Context> context;
    int silence_ms = 0; // 0: a connection may be silent for as long as it likes
    std::mutex mutex; // guards all below
    bool is_aborted = false, is_connected = false;
    std::set<UnboundBuffer *> waiting;
    std::mutex begun_mutex; // guards all below
    std::exception_ptr begin_failure;
    std::map<uint32_t, std::vector<std::unique_ptr<pending>>> begun; // by tag
};

/* Blocks signals of this thread, and so of those that it starts. Gloo's own thread must receive none: they belong to
 * the program, and only that thread writes to connections, which raises SIGPIPE when they are closed. */
class masked_signals {
    sigset_t before;

  public:
    masked_signals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~masked_signals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    masked_signals(const masked_signals &) = delete;
    masked_signals &operator=(const masked_signals &) = delete;
};

/* What a thrown exception is as a status. To be called in its handler. */
tdm_status status_of_exception(const char *doing) {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        TDM_MODULE_FAIL(TDM_E_MEMORY, "gloo: %s: out of memory", doing);
    } catch (const std::exception &error) {
        TDM_MODULE_FAIL(TDM_E_COMM, "gloo: %s: %s", doing, error.what());
    } catch (...) {
        TDM_MODULE_FAIL(TDM_E_COMM, "gloo: %s failed", doing);
    }
}

/* ---- opening ---- */

/* Each address is its length and its bytes. */
void write_addresses(const transport &t, unsigned char *out) {
    std::memset(out, 0, size_t(t.world) * (length_bytes + address_bytes));
    for (int r = 0; r < t.world; r++) {
        if (r == t.rank) continue;
        const std::vector<char> bytes = t.context->getPair(r)->address().bytes();
        const uint32_t length = uint32_t(bytes.size());
        unsigned char *to = out + size_t(r) * (length_bytes + address_bytes);
        if (length > address_bytes) throw gloo::Exception("an address is too long");
        std::memcpy(to, &length, length_bytes);
        std::memcpy(to + length_bytes, bytes.data(), length);
    }
}

tdm_status open_transport(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                          int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    *out = nullptr;
    try {
        auto made = std::make_unique<transport>();
        gloo::transport::tcp::attr attributes;
        const masked_signals masked;
        attributes.hostname = interface;
        made->ops = &tdm__gloo_ops;
        made->host = host;
        made->rank = rank;
        made->world = world;
        made->silence_ms = int(std::min<int64_t>(silence_ms, INT32_MAX));
        made->device = gloo::transport::tcp::CreateDevice(attributes);
        made->context = made->device->createContext(rank, world);
        made->thread = std::make_unique<gloo_thread>(made->device);
        // For connecting; waits have none. Gloo counts in nanoseconds.
        made->context->setTimeout(std::chrono::milliseconds(std::min(timeout_ms, INT64_MAX / 2000000)));
        for (int r = 0; r < world; r++)
            if (r != rank) made->context->createPair(r);
        write_addresses(*made, static_cast<unsigned char *>(addresses));
        *out = made.release();
        return TDM_OK;
    } catch (...) {
        return status_of_exception("opening");
    }
}

bool has_ended(transport &t) {
    const std::lock_guard<std::mutex> lock(t.mutex);
    return t.is_aborted;
}

/* What rank r's `open` wrote for this rank. */
std::vector<char> peer_address(const void *addresses, int r) {
    const auto *from = static_cast<const unsigned char *>(addresses) + size_t(r) * (length_bytes + address_bytes);
    uint32_t length;
    std::memcpy(&length, from, length_bytes);
    if (length > address_bytes) throw gloo::Exception("an address is too long");
    return std::vector<char>(from + length_bytes, from + length_bytes + length);
}

/* Of two ranks the one with the larger address connects. Those to which this rank connects come first: their systems
 * answer whatever they are doing. To wait for a rank before that would hold up those that wait for this one. */
void connect_pairs(transport &t, const void *addresses, int &connecting_to) {
    std::vector<sockaddr_storage> own(size_t(t.world)), peers(size_t(t.world));
    for (int r = 0; r < t.world; r++) {
        connecting_to = r;
        if (r == t.rank) continue;
        own[size_t(r)] = Address(t.context->getPair(r)->address().bytes()).getSockaddr();
        peers[size_t(r)] = Address(peer_address(addresses, r)).getSockaddr();
    }
    for (const bool listens : {false, true}) {
        for (int r = 0; r < t.world && !has_ended(t); r++) {
            connecting_to = r;
            if (r == t.rank || tdm__gloo_listens(own[size_t(r)], peers[size_t(r)]) != listens) continue;
            t.context->getPair(r)->connect(peer_address(addresses, r));
        }
    }
    if (t.silence_ms > 0) tdm__gloo_watch(own, peers, t.silence_ms);
}

tdm_status connect_transport(tdm_transport *base, const void *addresses) {
    auto &t = *static_cast<transport *>(base);
    int connecting_to = 0;
    try {
        connect_pairs(t, addresses, connecting_to);
        const std::lock_guard<std::mutex> lock(t.mutex);
        t.is_connected = true;
        return TDM_OK;
    } catch (...) {
        char doing[32];
        std::snprintf(doing, sizeof(doing), "connecting to rank %d", connecting_to);
        return status_of_exception(doing);
    }
}

/* ---- messages ---- */

/* A message on its way. `abort` can reach it for as long as it lives. Gloo's thread posts it. */
class pending : public gloo_work {
    transport &t;
    const tdm_message message;
    const std::vector<int> any;
    std::unique_ptr<UnboundBuffer> buffer;
    std::exception_ptr failure; // it could not be posted; written by Gloo's thread
    batch *owner = nullptr;     // is told of that

    void run() noexcept override;

  public:
    pending(transport &own, const tdm_message &what, batch *of)
        : t(own), message(what), any(what.any, what.any + (what.any != nullptr ? what.any_count : 0)),
          buffer(own.context->createUnboundBuffer(what.data, what.bytes)), owner(of) {
        const std::lock_guard<std::mutex> lock(t.mutex);
        if (t.is_aborted) throw gloo::Exception("the job has ended");
        t.waiting.insert(buffer.get());
    }
    ~pending() override {
        t.thread->remove(this);
        const std::lock_guard<std::mutex> lock(t.mutex);
        t.waiting.erase(buffer.get());
    }
    bool is(const tdm_message &other) const {
        return message.sends == other.sends && message.peer == other.peer && message.data == other.data &&
               message.bytes == other.bytes && other.any == nullptr;
    }
    bool sends() const { return message.sends; }
    int peer() const { return message.any != nullptr ? -1 : message.peer; }
    /* False: `end_wait` was called. */
    bool wait() {
        return message.sends ? buffer->waitSend(nullptr, no_deadline) : buffer->waitRecv(message.from, no_deadline);
    }
    void end_wait() {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
    }
    void rethrow_failure() {
        t.thread->remove(this);
        if (failure != nullptr) std::rethrow_exception(failure);
    }
};

/* Receives first: then what is sent need not wait for them. */
void post(transport &t, const std::vector<pending *> &list) {
    std::vector<gloo_work *> work;
    for (const bool sends : {false, true})
        for (pending *each : list)
            if (each->sends() == sends) work.push_back(each);
    t.thread->add(work);
}

/* A message that `begin` has begun; NULL: it has not. */
std::unique_ptr<pending> take_begun(transport &t, const tdm_message &message) {
    const std::lock_guard<std::mutex> lock(t.begun_mutex);
    if (t.begin_failure != nullptr) std::rethrow_exception(t.begin_failure);
    const auto of_tag = t.begun.find(message.tag);
    if (of_tag == t.begun.end()) return nullptr;
    const auto found = std::find_if(of_tag->second.begin(), of_tag->second.end(),
                                    [&](const auto &each) { return each->is(message); });
    if (found == of_tag->second.end()) return nullptr;
    std::unique_ptr<pending> taken = std::move(*found);
    of_tag->second.erase(found);
    if (of_tag->second.empty()) t.begun.erase(of_tag);
    return taken;
}

/* The messages of one call of `exchange`. */
class batch {
    transport &t;
    std::vector<std::unique_ptr<pending>> list;
    const pending *failed = nullptr;

  public:
    batch(transport &own, const tdm_message *message, int count) : t(own) {
        std::vector<pending *> fresh;
        list.reserve(size_t(count));
        for (int i = 0; i < count; i++) {
            list.push_back(take_begun(t, message[i]));
            if (list.back() != nullptr) continue;
            list.back() = std::make_unique<pending>(t, message[i], this);
            fresh.push_back(list.back().get());
        }
        post(t, fresh);
    }
    ~batch() {
        for (const auto &each : list) // Gloo's thread may tell this one of a failure until then
            if (each != nullptr) t.thread->remove(each.get());
    }
    batch(const batch &) = delete;
    batch &operator=(const batch &) = delete;

    void fail(const pending *which) noexcept {
        if (failed == nullptr) failed = which;
        for (const auto &each : list) each->end_wait();
    }
    void wait(int *lost) {
        for (const auto &each : list) {
            *lost = each->peer();
            if (each->wait()) continue;
            each->rethrow_failure();
            for (const auto &other : list) {
                *lost = other->peer();
                if (other.get() == failed) other->rethrow_failure();
            }
            throw gloo::Exception("the job has ended");
        }
    }
};

void pending::run() noexcept {
    try {
        if (message.sends)
            buffer->send(message.peer, message.tag);
        else if (message.any != nullptr)
            buffer->recv(any, message.tag);
        else
            buffer->recv(message.peer, message.tag);
    } catch (...) {
        failure = std::current_exception();
        end_wait();
        if (owner != nullptr) owner->fail(this);
    }
}

tdm_status exchange(tdm_transport *base, const tdm_message *message, int count, int *lost) {
    auto &t = *static_cast<transport *>(base);
    *lost = -1;
    try {
        batch(t, message, count).wait(lost);
        return TDM_OK;
    } catch (...) {
        return status_of_exception("a message");
    }
}

/* Gloo sends a message only when its receiver has said that it waits for it; so what is begun early need not wait for
 * that on its way. */
void begin(tdm_transport *base, const tdm_message *message, int count) {
    auto &t = *static_cast<transport *>(base);
    std::vector<pending *> fresh;
    try {
        const std::lock_guard<std::mutex> lock(t.begun_mutex);
        for (int i = 0; i < count; i++) {
            auto &of_tag = t.begun[message[i].tag];
            of_tag.push_back(std::make_unique<pending>(t, message[i], nullptr));
            fresh.push_back(of_tag.back().get());
        }
        post(t, fresh);
    } catch (...) { // the next call of `exchange` tells it: messages are not in their order any more
        const std::lock_guard<std::mutex> lock(t.begun_mutex);
        t.begin_failure = std::current_exception();
    }
}

void forget(tdm_transport *base, uint32_t tag) {
    auto &t = *static_cast<transport *>(base);
    const std::lock_guard<std::mutex> lock(t.begun_mutex);
    t.begun.erase(tag);
}

/* ---- ending ---- */

void abort_transport(tdm_transport *base) {
    auto &t = *static_cast<transport *>(base);
    const std::lock_guard<std::mutex> lock(t.mutex);
    t.is_aborted = true;
    for (UnboundBuffer *buffer : t.waiting) {
        buffer->abortWaitRecv();
        buffer->abortWaitSend();
    }
    /* A connection that is being made waits for a rank that may not come any more. */
    for (int r = 0; r < t.world && !t.is_connected; r++)
        if (r != t.rank) t.context->getPair(r)->close();
}

void close_transport(tdm_transport *base) {
    auto *t = static_cast<transport *>(base);
    if (t == nullptr) return;
    t->begun.clear(); // first: a connection that is being closed is locked, and Gloo's thread would wait to post there
    t->thread->hurry();
    try {
        for (int r = 0; r < t->world; r++)
            if (r != t->rank) t->context->getPair(r)->close();
    } catch (...) { // it is closed, or was never connected
    }
    t->context.reset();
    t->device.reset();
    t->thread.reset();
    delete t;
}

} // namespace

extern "C" const tdm_transport_ops tdm__gloo_ops = {
    "gloo", length_bytes + address_bytes, open_transport, connect_transport, exchange, begin, forget,
    abort_transport, close_transport,
};
