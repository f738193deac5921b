/* The collectives. After the meeting (hosts.h) data that did not fit the entries goes straight from memory to memory. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/levels.h"
#include "runtime/comm/reduce.h"

static bool fits_entry(size_t bytes) {
    return bytes <= TDM_HOSTS_ENTRY_BYTES;
}

/* ---- all_reduce and reduce ---- */

static void reduce_entries(const tdm_hosts_comm *c, const tdm_reduction *how) {
    const tdm_span *spans = how->spans;
    const void *source[TDM_COMM_WORLD_MAX];
    for (size_t i = 0, before = 0; i < how->span_count; before += tdm__span_bytes(spans[i++])) {
        for (int r = 0; r < c->comm.world; r++) source[r] = c->entry[r].data + before;
        tdm__reduce_sources(spans[i].data, source, c->comm.world, spans[i].count, how->dtype, how->op);
    }
}

static tdm_status begin_span(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    return tdm__levels_can_reduce(c, how) ? TDM_OK : tdm__hosts_begin_reduction(c, io, how);
}

/* begin_span of the same comes before. */
static tdm_status reduce_span(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    return tdm__levels_can_reduce(c, how) ? tdm__levels_all_reduce(c, io, how) : tdm__hosts_reduce_data(c, io, how);
}

/* Copies a chunk of all spans into one buffer and back, which costs less than messages for each span. */
static tdm_status reduce_copies(tdm_hosts_comm *c, const tdm_reduction *how) {
    const size_t width = tdm_dtype_bytes(how->dtype), chunk = TDM_HOSTS_CHUNK_BYTES / width;
    const size_t most = how->count < chunk ? how->count : chunk;
    tdm_status status = TDM_OK;
    void *data = NULL;
    TDM_TRY(tdm__new(c->comm.host, &data, most, width, "communicator's buffer"));
    for (size_t done = 0; done < how->count && status == TDM_OK;) {
        const size_t n = how->count - done < most ? how->count - done : most;
        const tdm_span now = {data, n, how->dtype};
        status = begin_span(c, now, how);
        tdm__spans_read(how->spans, done, n, data);
        if (status == TDM_OK) status = reduce_span(c, now, how);
        if (status == TDM_OK) tdm__spans_write(how->spans, done, n, data);
        done += n;
    }
    if (status != TDM_OK) tdm__hosts_forget(c); /* messages that have begun may still come into it */
    tdm__delete(c->comm.host, data);
    return status;
}

static tdm_status reduce(tdm_comm *comm, const tdm_reduction *how) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const bool small = fits_entry(how->count * tdm_dtype_bytes(how->dtype));
    if (small) tdm__spans_read(how->spans, 0, how->count, c->entry[comm->rank].data);
    if (!small && how->span_count == 1) TDM_TRY(begin_span(c, how->spans[0], how));
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    if (small && tdm__gets_result(how, comm->rank)) reduce_entries(c, how);
    if (small) return TDM_OK;
    return how->span_count == 1 ? reduce_span(c, how->spans[0], how) : reduce_copies(c, how);
}

/* ---- reduce_scatter ---- */

/* A reduce_scatter under way. */
typedef struct scattering {
    tdm_hosts_comm *c;
    const tdm_pairs *what;
    size_t width, most; /* of an element; elements of a part at a time */
    unsigned char *copy, *come,
        *sum; /* of what goes to each member (several spans), what comes from each, the result */
} scattering;

static tdm_status prepare(scattering *s, tdm_hosts_comm *c, const tdm_pairs *what) {
    const size_t world = (size_t)c->comm.world, width = tdm_dtype_bytes(what->dtype);
    const size_t most = TDM_HOSTS_CHUNK_BYTES / width / world + 1, copies = what->span_count > 1 ? world : 0;
    *s = (scattering){.c = c, .what = what, .width = width, .most = what->count < most ? what->count : most};
    TDM_TRY(tdm__hosts_scratch(c, (world + copies + 1) * s->most * width));
    s->come = c->scratch;
    s->sum = s->come + world * s->most * width;
    s->copy = s->sum + s->most * width;
    return TDM_OK;
}

/* The `n` elements from number `done` on that go to a member. */
static unsigned char *part_for(const scattering *s, int member, size_t done, size_t n) {
    const size_t to = (size_t)member;
    if (s->what->span_count > 1) return s->copy + to * n * s->width;
    return tdm__bytes_at(s->what->whole[0].data, (to * s->what->count + done) * s->width);
}

/* Adds the messages that bring all members' parts of this rank's elements. */
static int add_parts(const scattering *s, size_t done, size_t n) {
    tdm_hosts_comm *c = s->c;
    int count = 0;
    for (int r = 0; n > 0 && r < c->comm.world; r++) {
        if (r == c->comm.rank) continue;
        c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, part_for(s, r, done, n), n * s->width);
        c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, s->come + (size_t)r * n * s->width, n * s->width);
    }
    return count;
}

static tdm_status scatter_chunk(const scattering *s, tdm_reduce_op op, size_t done, size_t n) {
    const void *source[TDM_COMM_WORLD_MAX];
    tdm_hosts_comm *c = s->c;
    const int world = c->comm.world;
    for (int r = 0; r < world && s->what->span_count > 1; r++)
        tdm__spans_read_part(s->what->whole, r, world, done, n, part_for(s, r, done, n));
    TDM_TRY(tdm__hosts_exchange(c, add_parts(s, done, n)));
    for (int r = 0; r < world; r++)
        source[r] = r == c->comm.rank ? part_for(s, r, done, n) : s->come + (size_t)r * n * s->width;
    tdm__reduce_sources(s->sum, source, world, n, s->what->dtype, op);
    tdm__spans_write(s->what->part, done, n, s->sum);
    return TDM_OK;
}

static tdm_status reduce_scatter(tdm_comm *comm, const tdm_pairs *what, tdm_reduce_op op) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    scattering s;
    TDM_TRY(prepare(&s, c, what));
    tdm__hosts_begin(c, add_parts(&s, 0, s.most), TDM_RECEIVES);
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    for (size_t done = 0; done < what->count;) {
        const size_t n = what->count - done < s.most ? what->count - done : s.most;
        TDM_TRY(scatter_chunk(&s, op, done, n));
        done += n;
    }
    return TDM_OK;
}

/* ---- collectives that only move data ---- */

static tdm_status broadcast(tdm_comm *comm, tdm_span io, int root) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const size_t bytes = tdm__span_bytes(io);
    if (!fits_entry(bytes) && c->levels == NULL) tdm__hosts_begin_broadcast(c, io.data, bytes, root);
    TDM_TRY(tdm__hosts_agree_on_call(c, c->comm.rank == root ? io.data : NULL, bytes));
    if (!fits_entry(bytes) && c->levels != NULL) return tdm__levels_broadcast(c, io, root);
    if (!fits_entry(bytes)) return tdm__hosts_broadcast_data(c, io.data, bytes, root);
    if (c->comm.rank != root && bytes > 0) memcpy(io.data, c->entry[root].data, bytes);
    return TDM_OK;
}

/* `root` < 0: every member gets the result. */
static int add_gather(tdm_hosts_comm *c, const void *in, void *out, size_t bytes, int root) {
    const int rank = c->comm.rank;
    int count = 0;
    for (int r = 0; bytes > 0 && r < c->comm.world; r++) {
        if (r == rank) continue;
        if (root < 0 || r == root) c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, in, bytes);
        if (root < 0 || rank == root)
            c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, tdm__bytes_at(out, (size_t)r * bytes), bytes);
    }
    return count;
}

static tdm_status gather_span(tdm_hosts_comm *c, tdm_span in, void *out, int root) {
    const size_t bytes = tdm__span_bytes(in), own = (size_t)c->comm.rank * bytes;
    const bool gets = root < 0 || root == c->comm.rank;
    tdm__hosts_begin(c, add_gather(c, in.data, out, bytes, root), TDM_RECEIVES);
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    if (gets && tdm__bytes_at(out, own) != in.data) memcpy(tdm__bytes_at(out, own), in.data, bytes);
    return tdm__hosts_exchange(c, add_gather(c, in.data, out, bytes, root));
}

/* Copies a chunk of all spans into one buffer, and those of all ranks back. */
static tdm_status gather_copies(tdm_hosts_comm *c, const tdm_pairs *what) {
    const int world = c->comm.world;
    const size_t width = tdm_dtype_bytes(what->dtype), chunk = TDM_HOSTS_CHUNK_BYTES / width / (size_t)world + 1;
    const size_t most = what->count < chunk ? what->count : chunk;
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    TDM_TRY(tdm__hosts_scratch(c, (size_t)world * most * width));
    for (size_t done = 0; done < what->count;) {
        const size_t n = what->count - done < most ? what->count - done : most, bytes = n * width;
        unsigned char *own = c->scratch + (size_t)c->comm.rank * bytes;
        tdm__spans_read(what->part, done, n, own);
        TDM_TRY(tdm__hosts_exchange(c, add_gather(c, own, c->scratch, bytes, -1)));
        for (int r = 0; r < world; r++)
            tdm__spans_write_part(what->whole, r, world, done, n, c->scratch + (size_t)r * bytes);
        done += n;
    }
    return TDM_OK;
}

static tdm_status gather(tdm_comm *comm, const tdm_pairs *what, int root) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const bool gets = root < 0 || root == comm->rank;
    if (!fits_entry(what->count * tdm_dtype_bytes(what->dtype)))
        return what->span_count > 1 ? gather_copies(c, what)
                                    : gather_span(c, what->part[0], gets ? what->whole[0].data : NULL, root);
    tdm__spans_read(what->part, 0, what->count, c->entry[comm->rank].data);
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    for (int r = 0; gets && r < comm->world; r++)
        tdm__spans_write_part(what->whole, r, comm->world, 0, what->count, c->entry[r].data);
    return TDM_OK;
}

/* Scatter, and with root < 0 all_to_all. `bytes` is the size of a part. */
static int add_distribution(tdm_hosts_comm *c, tdm_span in, tdm_span out, size_t bytes, int root) {
    const int rank = c->comm.rank;
    int count = 0;
    for (int r = 0; bytes > 0 && r < c->comm.world; r++) {
        unsigned char *to = root < 0 ? tdm__bytes_at(out.data, (size_t)r * bytes) : out.data;
        if (r == rank) continue;
        if (root < 0 || root == rank)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, tdm__bytes_at(in.data, (size_t)r * bytes), bytes);
        if (root < 0 || root == r) c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, to, bytes);
    }
    return count;
}

/* The rank's own part is copied while the others' are on their way. */
static tdm_status distribute(tdm_comm *comm, tdm_span in, tdm_span out, size_t bytes, int root) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const size_t own = (size_t)c->comm.rank * bytes;
    tdm__hosts_begin(c, add_distribution(c, in, out, bytes, root), TDM_RECEIVES);
    TDM_TRY(tdm__hosts_agree_on_call(c, NULL, 0));
    tdm__hosts_begin(c, add_distribution(c, in, out, bytes, root), TDM_SENDS);
    if (bytes > 0 && root < 0) memcpy(tdm__bytes_at(out.data, own), tdm__bytes_at(in.data, own), bytes);
    if (bytes > 0 && root == c->comm.rank) memcpy(out.data, tdm__bytes_at(in.data, own), bytes);
    return tdm__hosts_exchange(c, add_distribution(c, in, out, bytes, root));
}

/* All members see what each sends to each before data moves: so all find out whether the parts match. */
static tdm_status exchange_rows(tdm_hosts_comm *c, const tdm_comm_call *call) {
    uint64_t row[2 * TDM_COMM_WORLD_MAX];
    const size_t length = 2 * (size_t)c->comm.world;
    TDM_TRY(tdm__hosts_scratch(c, (size_t)c->comm.world * length * sizeof(*row)));
    tdm__parts_write(row, call, c->comm.world);
    const tdm_span own = {row, length, TDM_DTYPE_I64};
    const tdm_span all = {c->scratch, (size_t)c->comm.world * length, TDM_DTYPE_I64};
    TDM_TRY(gather(&c->comm, &(tdm_pairs){&own, &all, 1, length, TDM_DTYPE_I64}, -1));
    const uint64_t *rows = (const void *)c->scratch;
    return tdm__hosts_judge(c, tdm__parts_compare(&c->call, rows, length, c->comm.world, c->job_rank));
}

static int add_parts_v(tdm_hosts_comm *c, const tdm_comm_call *call) {
    const size_t width = tdm_dtype_bytes(call->in.dtype);
    size_t sent = 0, received = 0;
    int count = 0;
    for (int r = 0; r < c->comm.world; r++) {
        const size_t to = call->in_counts[r] * width, from = call->out_counts[r] * width;
        if (r != c->comm.rank && to > 0)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, tdm__bytes_at(call->in.data, sent), to);
        if (r != c->comm.rank && from > 0)
            c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, tdm__bytes_at(call->out.data, received), from);
        sent += to;
        received += from;
    }
    return count;
}

static tdm_status all_to_all_v(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const size_t width = tdm_dtype_bytes(call->in.dtype);
    size_t sent = 0, received = 0;
    TDM_TRY(exchange_rows(c, call)); /* only then all know that the parts match */
    tdm__hosts_begin(c, add_parts_v(c, call), TDM_SENDS | TDM_RECEIVES);
    for (int r = 0; r < c->comm.rank; r++) {
        sent += call->in_counts[r] * width;
        received += call->out_counts[r] * width;
    }
    const size_t own = call->in_counts[c->comm.rank] * width;
    if (own > 0) memcpy(tdm__bytes_at(call->out.data, received), tdm__bytes_at(call->in.data, sent), own);
    return tdm__hosts_exchange(c, add_parts_v(c, call));
}

/* ---- the call ---- */

void tdm__hosts_enter(tdm_hosts_comm *c, const tdm_call *call) {
    c->call = *call;
    c->call.sequence = c->comm.sequence;
    c->start_ns = tdm__now_ns();
    tdm__hub_note_call(c->job->hub, &c->call);
}

tdm_status tdm__hosts_leave(tdm_hosts_comm *c, tdm_status status) {
    char cause[TDM_CAUSE_TEXT];
    if (status == TDM_OK) return TDM_OK;
    tdm__hosts_forget(c);
    snprintf(cause, sizeof(cause), "rank %d: %s", c->job_rank[c->comm.rank], tdm_error_message());
    tdm__hub_end(c->job->hub, cause); /* counts only if this failure is the first */
    return status;
}

static const tdm_call_table table = {reduce,       reduce_scatter,         broadcast,       gather, distribute,
                                     all_to_all_v, tdm__hosts_receive_any, tdm__hosts_batch};

tdm_status tdm__hosts_run(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const tdm_call noted = tdm__call_of(call);
    tdm__hosts_enter(c, &noted);
    return tdm__hosts_leave(c, tdm__call_make(&table, comm, call));
}
