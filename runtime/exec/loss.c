#include "runtime/exec/loss.h"

#include <stdatomic.h>

#include "runtime/base/status.h"
#include "runtime/device/threads.h"

/* ROWS: whose losses are kept until they are added. LEAST_SHARED: with fewer numbers one thread is faster. */
enum { ROWS = 512, LEAST_SHARED = 8 * 1024 };

typedef struct piece {
    const tdm_loss_def *loss;
    tdm_loss_args args;
    double row_loss[ROWS];
    _Atomic int64_t correct;
    atomic_bool failed;
} piece;

static tdm_loss_args rows_of(const tdm_loss_args *all, tdm_target_kind target, int64_t begin, int64_t end) {
    tdm_loss_args part = *all;
    part.first_row += begin;
    part.rows = end - begin;
    part.y += begin * all->width;
    if (part.dy != NULL) part.dy += begin * all->width;
    part.target = target == TDM_TARGET_CLASS ? (const void *)((const int64_t *)all->target + begin)
                                             : (const void *)((const float *)all->target + begin * all->width);
    return part;
}

static void run_part(void *data, int64_t begin, int64_t end) {
    piece *p = data;
    tdm_loss_args part = rows_of(&p->args, p->loss->target, begin, end);
    int64_t correct = 0;
    part.correct = &correct;
    if (p->loss->run(&part, p->row_loss + begin) != TDM_OK) atomic_store(&p->failed, true);
    atomic_fetch_add(&p->correct, correct);
}

static tdm_status run_piece(piece *p, tdm_threads *threads) {
    const bool shared = p->args.rows * p->args.width >= LEAST_SHARED;
    TDM_TRY(tdm__threads_share(shared ? threads : NULL, p->args.rows, run_part, p));
    if (!atomic_load(&p->failed)) return TDM_OK;
    int64_t correct = 0;
    p->args.correct = &correct;
    return p->loss->run(&p->args, p->row_loss); /* once more: messages are of the thread that has them */
}

tdm_status tdm__loss_of_rows(const tdm_loss_def *loss, tdm_threads *threads, const tdm_loss_args *args) {
    double sum = 0;
    int64_t correct = 0;
    for (int64_t first = 0; first < args->rows; first += ROWS) {
        const int64_t end = args->rows - first < ROWS ? args->rows : first + ROWS;
        piece p = {.loss = loss, .args = rows_of(args, loss->target, first, end)};
        TDM_TRY(run_piece(&p, threads));
        for (int64_t n = 0; n < p.args.rows; n++) sum += p.row_loss[n];
        correct += atomic_load(&p.correct);
    }
    *args->loss_sum += sum;
    *args->correct += correct;
    return TDM_OK;
}
