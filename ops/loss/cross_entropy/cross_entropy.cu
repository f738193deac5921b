/* cross_entropy on CUDA: softmax, loss, gradient and hits in one pass over the outputs. The formulas and the order of
 * their operations are those of cross_entropy.c. A narrow row is computed by one thread, a wider one by a warp, else by
 * a block.
 *
 * Labels are checked on the host when a batch is put together. A label out of range here makes its row NaN, which
 * training notices. */
#include "ops/loss/classes.h"

#include "runtime/backends/cuda/kit/loss.h"

using namespace tdm_cuda;

namespace {

struct entropy_settings {
    const int64_t *label;
    const tdm_step_values *values;
    int64_t width, ignore_index;
    /* kept: the label's share, 1 - smoothing; spread: each class's share of the smoothing */
    double smoothing, kept, spread;
    tdm_class_weights weights;
    double weights_total;
};

template <class Number> struct entropy_row : entropy_settings {
    const Number *y;
    Number *dy; /* NULL: no gradient is needed */
    __device__ row_result run(int64_t n) const;
};

/* The values of a row that its gradient depends on. */
struct entropy {
    float max, log_total;
};

__device__ inline float class_loss(const entropy &row, float y) {
    return -((y - row.max) - row.log_total);
}

/* `all` is the sum of the weighted losses of all classes. */
template <class Number>
__device__ inline float row_loss(const entropy_settings &args, const entropy &row, const Number *y,
                                 const tdm_label &label, double all) {
    const tdm_class_weights *w = &args.weights;
    double loss = tdm__class_weight(w, label.first) * (double)class_loss(row, get(y, label.first));
    if (label.weight != 0.0)
        loss = (1.0 - label.weight) * loss +
               label.weight * (tdm__class_weight(w, label.second) * (double)class_loss(row, get(y, label.second)));
    if (args.smoothing == 0.0) return (float)loss;
    return (float)(args.kept * loss + args.spread * all);
}

/* softmax * total - w q * seed, each product rounded on its own. The label fits. */
struct entropy_gradient {
    const entropy_settings &args;
    const tdm_label &label;
    float seed, total, on_first, on_second;
    __device__ entropy_gradient(const entropy_settings &of_args, const tdm_label &of)
        : args(of_args), label(of), seed(args.values->loss_seed) {
        const double first = args.kept * (1.0 - of.weight) * tdm__class_weight(&args.weights, of.first);
        const double second = args.kept * of.weight * tdm__class_weight(&args.weights, of.second);
        on_first = (float)first * seed;
        on_second = (float)second * seed;
        total = args.weights.count == 0 ? seed : (float)(first + second + args.spread * args.weights_total) * seed;
    }
    __device__ float at(float y, const entropy &row, int64_t c) const {
        const float spread = (float)(args.spread * tdm__class_weight(&args.weights, c)) * seed;
        const float gradient = expf((y - row.max) - row.log_total) * total - spread;
        if (c == label.first) return gradient - on_first;
        return c == label.second ? gradient - on_second : gradient;
    }
};

/* Fills a row's gradient with one value. The threads that share the row are `lane`, `lane + step`, ... */
template <class Number>
__device__ inline void fill_row(Number *dy, float value, int64_t lane, int64_t step, int64_t width) {
    if (dy == NULL) return;
    for (int64_t c = lane; c < width; c += step) put(dy, c, value);
}

/* The index of the largest output, as torch.argmax gives it: the first of equal ones, and a NaN before everything. */
struct candidate {
    float value;
    int64_t at;
};

__device__ inline bool is_nan(float x) {
    return x != x;
}

__device__ inline bool goes_before(const candidate &a, const candidate &b) {
    if (a.value > b.value || (is_nan(a.value) && !is_nan(b.value))) return true;
    return (a.value == b.value || (is_nan(a.value) && is_nan(b.value))) && a.at < b.at;
}

/* ---- a thread per row ---- */

template <class Number> __device__ row_result entropy_row<Number>::run(int64_t n) const {
    const Number *in = y + n * width;
    Number *out = dy != NULL ? dy + n * width : NULL;
    /* Issues all first loads before it uses any of them. */
    const int64_t packed = label[n];
    const tdm_label is = tdm_label_unpack(packed);
    candidate best = {get(in, 0), 0};
    for (int64_t c = 1; c < width; c++) {
        const candidate other = {get(in, c), c};
        if (goes_before(other, best)) best = other;
    }
    if (packed == ignore_index || !tdm_label_fits(is, width)) {
        fill_row(out, packed == ignore_index ? 0.0f : NAN, 0, 1, width);
        return {packed == ignore_index ? 0.0 : (double)NAN, 0};
    }
    float sum = 0;
    for (int64_t c = 0; c < width; c++) sum += expf(get(in, c) - best.value);
    const entropy row = {best.value, logf(sum)};
    double all = 0;
    for (int64_t c = 0; smoothing != 0.0 && c < width; c++)
        all += tdm__class_weight(&weights, c) * (double)class_loss(row, get(in, c));
    const float loss = row_loss(*this, row, in, is, all);
    const entropy_gradient gradient(*this, is);
    for (int64_t c = 0; out != NULL && c < width; c++) put(out, c, gradient.at(get(in, c), row, c));
    return {(double)loss, best.at == tdm_label_heavier(is)};
}

/* ---- TEAM threads per row: a warp, or a whole block ---- */

static constexpr int WIDE_TEAM = 512;
static constexpr int64_t WARP_WIDTH = 1024; /* the most elements of a row that a warp computes */

template <int TEAM> struct team_block {
    static constexpr int THREADS = TEAM == WARP ? 8 * WARP : TEAM;
    static constexpr int ROWS = THREADS / TEAM;
};

/* Returns the result in every thread of the team; `room` as for block_sum. */
template <int TEAM> __device__ inline candidate team_first(candidate best, candidate *room) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        const candidate other = {__shfl_xor_sync(ALL_LANES, best.value, offset),
                             __shfl_xor_sync(ALL_LANES, best.at, offset)};
        if (goes_before(other, best)) best = other;
    }
    if (TEAM == WARP) return best;
    if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = best;
    __syncthreads();
    best = room[0];
    for (int warp = 1; warp < TEAM / WARP; warp++)
        if (goes_before(room[warp], best)) best = room[warp];
    __syncthreads();
    return best;
}

template <int TEAM, class Number> __device__ inline row_result team_row(const entropy_row<Number> &args, int64_t n) {
    __shared__ candidate candidates[TEAM / WARP];
    __shared__ double doubles[TEAM / WARP];
    __shared__ float floats[TEAM / WARP];
    const int64_t lane = threadIdx.x % TEAM, width = args.width, packed = args.label[n];
    const tdm_label label = tdm_label_unpack(packed);
    const Number *in = args.y + n * width;
    Number *out = args.dy != NULL ? args.dy + n * width : NULL;
    if (packed == args.ignore_index || !tdm_label_fits(label, width)) {
        fill_row(out, packed == args.ignore_index ? 0.0f : NAN, lane, TEAM, width);
        return {packed == args.ignore_index ? 0.0 : (double)NAN, 0};
    }
    candidate best = {-INFINITY, INT64_MAX};
    for (int64_t c = lane; c < width; c += TEAM) {
        const candidate other = {get(in, c), c};
        if (goes_before(other, best)) best = other;
    }
    best = team_first<TEAM>(best, candidates);
    float sum = 0;
    for (int64_t c = lane; c < width; c += TEAM) sum += expf(get(in, c) - best.value);
    const entropy row = {best.value, logf(block_sum<TEAM>(sum, floats))};
    double all = 0;
    if (args.smoothing != 0.0) {
        for (int64_t c = lane; c < width; c += TEAM)
            all += tdm__class_weight(&args.weights, c) * (double)class_loss(row, get(in, c));
        all = block_sum<TEAM>(all, doubles);
    }
    const float loss = row_loss(args, row, in, label, all);
    if (out != NULL) {
        const entropy_gradient gradient(args, label);
        for (int64_t c = lane; c < width; c += TEAM) put(out, c, gradient.at(get(in, c), row, c));
    }
    return {(double)loss, best.at == tdm_label_heavier(label)};
}

template <int TEAM, class Number>
__global__ void __launch_bounds__(team_block<TEAM>::THREADS)
    wide_rows(entropy_row<Number> args, int64_t first, int64_t rows, row_result *out) {
    const int64_t step = (int64_t)gridDim.x * team_block<TEAM>::ROWS;
    for (int64_t n = (int64_t)blockIdx.x * team_block<TEAM>::ROWS + threadIdx.x / TEAM; n < rows; n += step) {
        const row_result result = team_row<TEAM>(args, first + n);
        if (threadIdx.x % TEAM == 0) out[n] = result;
    }
}

template <int TEAM, class Number>
tdm_status run_wide(tdm_cuda_device *device, const entropy_row<Number> &row, int64_t rows, const loss_totals &totals) {
    return run_in_turns(device, rows, totals, [&](int64_t first, int64_t count, row_result *out) {
        TDM_LAUNCH((wide_rows<TEAM, Number>), blocks_for(count, team_block<TEAM>::ROWS), team_block<TEAM>::THREADS,
                   device->stream, row, first, count, out);
        return TDM_OK;
    });
}

/* Softmax and loss are in float for both precisions. */
template <class Number> tdm_status run(const tdm_loss_args *args) {
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    entropy_row<Number> row = {};
    row.label = (const int64_t *)args->target;
    row.values = args->values;
    row.width = args->width;
    row.ignore_index = args->section->ignore_index;
    row.smoothing = args->section->label_smoothing;
    row.kept = 1.0 - row.smoothing;
    row.spread = row.smoothing / (double)args->width;
    row.weights = tdm__class_weights(args);
    row.weights_total = tdm__class_weights_total(args->section, args->width);
    row.y = as<Number>(args->y);
    row.dy = as<Number>(args->dy);
    const loss_totals totals = {args->loss_sum, args->correct};
    if (args->width <= NARROW) return run_narrow(device, row, args->rows, totals);
    if (args->width <= WARP_WIDTH) return run_wide<WARP>(device, row, args->rows, totals);
    return run_wide<WIDE_TEAM>(device, row, args->rows, totals);
}

} /* namespace */

TDM_CUDA_LOSS(cross_entropy);
