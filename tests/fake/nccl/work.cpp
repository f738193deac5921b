#include "work.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/base/tree.h"

namespace fake_nccl {

size_t type_bytes(ncclDataType_t type) {
    switch (type) {
    case ncclUint8:
        return 1;
    case ncclBfloat16:
    case ncclFloat16:
        return 2;
    case ncclInt32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclFloat64:
        return 8;
    default:
        return 0;
    }
}

/* ---- sums, as the canonical tree ---- */

/* A float of 16 bits, rounded after each operation, as NCCL's rings do. */
template <float WIDEN(uint16_t), uint16_t NARROW(float)> struct narrow {
    uint16_t bits;
    explicit narrow(float value) : bits(NARROW(value)) {}
    explicit narrow(double value) : narrow(static_cast<float>(value)) {}
    narrow() = default;
    operator float() const {
        return WIDEN(bits);
    }
};

template <class T> static T apply(T a, T b, ncclRedOp_t op) {
    switch (op) {
    case ncclSum:
    case ncclAvg: /* divided at the end */
        return static_cast<T>(a + b);
    case ncclProd:
        return static_cast<T>(a * b);
    case ncclMin:
        return b < a ? b : a;
    case ncclMax:
        return b > a ? b : a;
    default:
        return a;
    }
}

/* Of the element at byte `from` of the pieces of ranks `first` on. */
template <class T> static T tree(const member &m, unsigned half, size_t from, int first, int ranks, ncclRedOp_t op) {
    T one;
    memcpy(&one, (*m.at)->rank[first].piece[half] + from, sizeof(T));
    if (ranks == 1) return one;
    const int left = tdm__tree_left(ranks);
    return apply(tree<T>(m, half, from, first, left, op), tree<T>(m, half, from, first + left, ranks - left, op), op);
}

/* Of elements from byte `from` of the pieces on. */
template <class T>
static void reduce(const member &m, unsigned half, size_t from, void *out, size_t count, ncclRedOp_t op) {
    for (size_t i = 0; i < count; i++) {
        T sum = tree<T>(m, half, from + i * sizeof(T), 0, m.world, op);
        if (op == ncclAvg) sum = static_cast<T>(static_cast<double>(sum) / m.world);
        memcpy(static_cast<char *>(out) + i * sizeof(T), &sum, sizeof(T));
    }
}

static void reduce_any(const member &m, unsigned half, size_t from, void *out, size_t count, ncclDataType_t type,
                       ncclRedOp_t op) {
    switch (type) {
    case ncclUint8:
        return reduce<unsigned char>(m, half, from, out, count, op);
    case ncclInt32:
        return reduce<int32_t>(m, half, from, out, count, op);
    case ncclInt64:
        return reduce<int64_t>(m, half, from, out, count, op);
    case ncclFloat32:
        return reduce<float>(m, half, from, out, count, op);
    case ncclFloat64:
        return reduce<double>(m, half, from, out, count, op);
    case ncclBfloat16:
        return reduce<narrow<tdm__bf16_float, tdm__bf16_of>>(m, half, from, out, count, op);
    case ncclFloat16:
        return reduce<narrow<tdm__f16_float, tdm__f16_of>>(m, half, from, out, count, op);
    default:
        return;
    }
}

/* ---- progress ---- */

struct progress {
    operation what;
    size_t done = 0, put = 0; /* bytes finished; bytes put down or sent */
    bool here = false;        /* this rank has put its piece of the round down */
    bool over = false;
    bool captured = false;
};

/* NCCL wants an operation to be in a graph on all ranks or on none. */
static void check_captured(const member &m, const progress &p) {
    for (int r = 0; r < m.world; r++) {
        if ((*m.at)->rank[r].captured[m.round % 2] != p.captured)
            die("a collective comes from a graph on rank %d, but not on rank %d", p.captured ? m.rank : r,
                p.captured ? r : m.rank);
    }
}

static char *at_byte(void *base, size_t byte) {
    return static_cast<char *>(base) + byte;
}

static void put_piece(member &m, progress &p, size_t bytes) {
    seat &own = (*m.at)->rank[m.rank];
    own.captured[(m.round + 1) % 2] = p.captured;
    const bool gives = p.what.what != kind::broadcast || p.what.rank == m.rank;
    if (gives) memcpy(own.piece[(m.round + 1) % 2], static_cast<const char *>(p.what.send) + p.done, bytes);
    own.here.store(m.round + 1);
    p.here = true;
}

/* Of a reduce_scatter the pieces hold bytes from p.done on of all parts, one part after another. */
static void take_own_part(const member &m, const progress &p, size_t bytes) {
    const operation &o = p.what;
    const size_t width = type_bytes(o.type), part = o.count * width, own = static_cast<size_t>(m.rank) * part;
    const size_t first = std::max(own, p.done), last = std::min(own + part, p.done + bytes);
    if (first >= last) return;
    reduce_any(m, m.round % 2, first - p.done, at_byte(o.receive, first - own), (last - first) / width, o.type, o.op);
}

static void take_pieces(member &m, progress &p, size_t bytes) {
    const operation &o = p.what;
    const unsigned half = m.round % 2;
    const size_t total = o.count * type_bytes(o.type), count = bytes / type_bytes(o.type);
    switch (o.what) {
    case kind::all_reduce:
        reduce_any(m, half, 0, at_byte(o.receive, p.done), count, o.type, o.op);
        break;
    case kind::reduce:
        if (o.rank == m.rank) reduce_any(m, half, 0, at_byte(o.receive, p.done), count, o.type, o.op);
        break;
    case kind::reduce_scatter:
        take_own_part(m, p, bytes);
        break;
    case kind::broadcast:
        memcpy(at_byte(o.receive, p.done), (*m.at)->rank[o.rank].piece[half], bytes);
        break;
    default:
        for (int r = 0; r < m.world; r++) {
            memcpy(at_byte(o.receive, static_cast<size_t>(r) * total + p.done), (*m.at)->rank[r].piece[half], bytes);
        }
    }
}

/* true: done */
static bool advance_collective(member &m, progress &p) {
    const size_t parts = p.what.what == kind::reduce_scatter ? static_cast<size_t>(m.world) : 1;
    const size_t total = parts * p.what.count * type_bytes(p.what.type);
    while (p.done < total) {
        const size_t bytes = std::min<size_t>(piece_bytes, total - p.done);
        if (!p.here) put_piece(m, p, bytes);
        for (int r = 0; r < m.world; r++) {
            if ((*m.at)->rank[r].here.load() < m.round + 1) return false;
        }
        m.round++;
        p.here = false;
        check_captured(m, p);
        take_pieces(m, p, bytes);
        p.done += bytes;
    }
    return true;
}

/* Done when the receiver has all: sends block, as NCCL says. */
static bool advance_send(member &m, progress &p) {
    channel &c = (*m.at)->message[m.rank][p.what.rank];
    const size_t total = p.what.count * type_bytes(p.what.type);
    while (p.put < total && c.filled.load() - c.taken.load() < 2) {
        const size_t bytes = std::min<size_t>(message_bytes, total - p.put);
        memcpy(c.piece[c.filled.load() % 2], static_cast<const char *>(p.what.send) + p.put, bytes);
        c.filled++;
        p.put += bytes;
    }
    return p.put == total && c.taken.load() == c.filled.load();
}

static bool advance_receive(member &m, progress &p) {
    channel &c = (*m.at)->message[p.what.rank][m.rank];
    const size_t total = p.what.count * type_bytes(p.what.type);
    while (p.done < total && c.filled.load() > c.taken.load()) {
        const size_t bytes = std::min<size_t>(message_bytes, total - p.done);
        memcpy(at_byte(p.what.receive, p.done), c.piece[c.taken.load() % 2], bytes);
        c.taken++;
        p.done += bytes;
    }
    return p.done == total;
}

static bool advance(member &m, progress &p) {
    switch (p.what.what) {
    case kind::send:
        return advance_send(m, p);
    case kind::receive:
        return advance_receive(m, p);
    default:
        return advance_collective(m, p);
    }
}

namespace {
struct job {
    std::shared_ptr<member> who;
    std::vector<progress> parts;
    bool captured, never;

    job(const std::shared_ptr<member> &member_, const std::vector<operation> &operations, bool captured_, bool never_)
        : who(member_), captured(captured_), never(never_) {
        for (const operation &o : operations) add(o);
        (captured ? who->graphs : who->under_way)++;
    }
    ~job() {
        if (captured) who->graphs--;
    }
    job(const job &) = delete;
    job &operator=(const job &) = delete;

    progress fresh(const operation &what) const {
        progress p{what};
        p.captured = captured;
        return p;
    }
    void add(const operation &what) {
        parts.push_back(fresh(what));
    }

    /* Messages go on side by side; collectives of one group one after the other, as everywhere. */
    bool step() {
        if (never && !who->stopped) return false;
        bool all = true, collective_waits = false;
        for (progress &p : parts) {
            if (p.over || who->stopped) continue;
            const bool message = p.what.what == kind::send || p.what.what == kind::receive;
            if (!message && collective_waits) continue;
            p.over = advance(*who, p);
            all = all && p.over;
            if (!message && !p.over) collective_waits = true;
        }
        if (!all && !who->stopped) return false;
        for (progress &p : parts) p = fresh(p.what);
        if (!captured) who->under_way--;
        return true;
    }
};
} // namespace

std::function<bool()> make_work(const std::shared_ptr<member> &who, std::vector<operation> operations, bool captured,
                                bool never) {
    auto one = std::make_shared<job>(who, operations, captured, never);
    return [one] { return one->step(); };
}

} // namespace fake_nccl
