#include "runtime/backends/dnnl/kit/sgemm.h"

#include "runtime/backends/dnnl/kit/gemm.h"
#include "runtime/backends/dnnl/kit/passes.h"

typedef struct {
    const tdm_dnnl_sgemm *whole;
    float *room; /* of a product with long sums */
    int64_t parts;
    _Atomic int status; /* dnnl_status_t */
} parted;

/* The least size of a part. Rows or columns: oneDNN adds narrow matrices in another order. Multiplications: fewer take
 * less than some ten microseconds, and are not worth waking a thread for. A part of a product that is always cut is
 * larger, because a single thread pays for the cut, too. */
enum { NARROWEST = 64, LEAST_WORK = 1 << 19, MOST_PARTS = 4 };
enum { ALWAYS_NARROWEST = 128, ALWAYS_LEAST_WORK = 1 << 21 };

dnnl_status_t tdm__dnnl_sgemm_run(const tdm_dnnl_sgemm *p) {
    return TDM_DNNL(dnnl_sgemm)(p->transposed_a, p->transposed_b, p->m, p->n, p->k, 1.0f, p->a, p->lda, p->b, p->ldb,
                                p->adds ? 1.0f : 0.0f, p->c, p->ldc);
}

static int64_t cut(int64_t length, int64_t part, int64_t parts) {
    return part == parts ? length : length / NARROWEST * part / parts * NARROWEST;
}

static void multiply_parts(void *data, int64_t begin, int64_t end) {
    parted *job = data;
    for (int64_t part = begin; part < end; part++) {
        tdm_dnnl_sgemm p = *job->whole;
        const bool by_rows = p.m >= p.n;
        const int64_t length = by_rows ? p.m : p.n;
        const int64_t from = cut(length, part, job->parts), to = cut(length, part + 1, job->parts);
        if (by_rows) {
            p.a += p.transposed_a == 'T' ? from : from * p.lda;
            p.c += from * p.ldc;
            p.m = to - from;
        } else {
            p.b += p.transposed_b == 'T' ? from * p.ldb : from;
            p.c += from;
            p.n = to - from;
        }
        const dnnl_status_t status = tdm__dnnl_sgemm_run(&p);
        if (status != dnnl_success) job->status = (int)status;
    }
}

static int64_t most_parts(const tdm_dnnl_sgemm *p, int64_t narrowest, int64_t least_work) {
    const int64_t wide = (p->m >= p->n ? p->m : p->n) / narrowest, long_enough = p->m * p->n * p->k / least_work;
    return wide < long_enough ? wide : long_enough;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Returns into how many parts to cut a product. oneDNN's own threads would cut sums, too, and the bits would depend on
 * their number. Where every part has the bits of the whole, there are as many as threads. Elsewhere a part may be added
 * in another order than the whole, so the sizes alone decide the parts, whoever computes them. (oneDNN is asked last,
 * because its answer takes as long as a small product.) */
static int64_t parts_of(const tdm_dnnl_sgemm *p, int threads) {
    const int64_t most = most_parts(p, NARROWEST, LEAST_WORK);
    const int64_t always = least(most_parts(p, ALWAYS_NARROWEST, ALWAYS_LEAST_WORK), MOST_PARTS);
    if (most <= 1 || (threads == 1 && always <= 1)) return 1;
    if (tdm__dnnl_sgemm_parts(p->m, p->n, p->k, p->transposed_b == 'T')) return least(most, threads);
    return always > 1 ? always : 1;
}

tdm_status tdm__dnnl_sgemm_share(tdm_device *device, int threads, const tdm_dnnl_sgemm *product, const char *what) {
    parted job = {.whole = product, .parts = parts_of(product, threads)};
    TDM_MODULE_TRY(tdm__dnnl_share(device, threads, job.parts, multiply_parts, &job));
    return tdm__dnnl_check((dnnl_status_t)job.status, what);
}

size_t tdm__dnnl_sgemm_bytes(const tdm_dnnl_sgemm *p, int threads) {
    const int64_t parts = parts_of(p, threads);
    const bool by_rows = p->m >= p->n; /* the last part is the largest */
    const int64_t m = by_rows ? p->m - cut(p->m, parts - 1, parts) : p->m;
    const int64_t n = by_rows ? p->n : p->n - cut(p->n, parts - 1, parts);
    return (size_t)least(parts, threads) * tdm__dnnl_gemm_bytes(m, n, p->k, sizeof(float));
}

/* ---- long sums ---- */

enum { LEAST_LONG = 256, PIECE = 256 }; /* terms */

int64_t tdm__dnnl_sgemm_room(int64_t m, int64_t k) {
    return m >= NARROWEST && k >= LEAST_LONG && tdm__dnnl_channel_block() != 16 ? m * PIECE : 0;
}

/* Rows [from, to) of c: adds piece after piece. */
static dnnl_status_t multiply_rows(const parted *job, int64_t from, int64_t to) {
    const tdm_dnnl_sgemm *whole = job->whole;
    float *room = job->room + from * PIECE;
    for (int64_t at = 0; at < whole->k; at += PIECE) {
        const int64_t left = whole->k - at, terms = left < PIECE ? left : PIECE;
        TDM_LANES(tdm__dnnl_passes)->transpose(room, whole->a + at * whole->lda + from, terms, to - from, whole->lda);
        const tdm_dnnl_sgemm piece = {'N',        'N',
                                      to - from,  whole->n,
                                      terms,      room,
                                      terms,      whole->b + at * whole->ldb,
                                      whole->ldb, whole->c + from * whole->ldc,
                                      whole->ldc, at > 0 || whole->adds};
        const dnnl_status_t status = tdm__dnnl_sgemm_run(&piece);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

static void multiply_long_parts(void *data, int64_t begin, int64_t end) {
    parted *job = data;
    for (int64_t part = begin; part < end; part++) {
        const dnnl_status_t status =
            multiply_rows(job, cut(job->whole->m, part, job->parts), cut(job->whole->m, part + 1, job->parts));
        if (status != dnnl_success) job->status = (int)status;
    }
}

/* The sizes alone decide the parts. */
tdm_status tdm__dnnl_sgemm_share_long(tdm_device *device, int threads, const tdm_dnnl_sgemm *product, float *room,
                                      const char *what) {
    if (room == NULL) return tdm__dnnl_sgemm_share(device, threads, product, what);
    const int64_t most = product->m * product->n * product->k / ALWAYS_LEAST_WORK;
    const int64_t parts = least(least(product->m / ALWAYS_NARROWEST, most), MOST_PARTS);
    parted job = {.whole = product, .room = room, .parts = parts > 1 ? parts : 1};
    TDM_MODULE_TRY(tdm__dnnl_share(device, threads, job.parts, multiply_long_parts, &job));
    return tdm__dnnl_check((dnnl_status_t)job.status, what);
}
