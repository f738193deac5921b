/* batchnorm2d on CUDA, including the addition and the relu that end a residual block.
 *
 * Sums over each channel come first (batchnorm2d_sums_cuda.h), then a pass over all elements applies the result in
 * float. If one block sums a whole channel it also does what follows the sums, so small images take two launches in
 * each direction. */
#include "ops/batchnorm2d/batchnorm2d_cuda.h"
#include "ops/batchnorm2d/batchnorm2d_sums_cuda.h"

using namespace tdm_cuda;

namespace {

/* ---- the pass over all elements ---- */

/* The coefficients of the elements of pack i: of neighbouring channels in NHWC, of one channel in PLAIN. */
template <int WIDE, bool NHWC> __device__ inline pack<float, WIDE> coefficient(const float *of, int64_t at) {
    if constexpr (NHWC) {
        return load<WIDE>(of, at);
    } else {
        pack<float, WIDE> out;
        for (int k = 0; k < WIDE; k++) out.at[k] = of[at];
        return out;
    }
}

template <bool NHWC, class Number> __device__ inline int64_t channel_of(const norm_operands<Number> &g, int64_t i) {
    if constexpr (NHWC) {
        return split(g.inner, &i);
    } else {
        i = quotient(g.inner, i);
        return split(g.channel, &i);
    }
}

/* The value as it would be after being stored and read again by the next layer. */
template <class Number> __device__ inline float kept(float value) {
    if constexpr (sizeof(Number) == sizeof(float))
        return value;
    else
        return widened(narrowed(value));
}

/* counter: NULL if the batch is not counted. It is incremented here, because the kernels before this one must all see
 * the same value. */
template <int WIDE, bool NHWC, class Number>
__global__ void apply_forward(norm_operands<Number> g, coefficients of, Number *y, bool relu, int64_t *counter) {
    const int64_t packs = g.channels * g.count / WIDE;
    if (counter != NULL && thread_index() == 0) ++*counter;
    for (int64_t i = thread_index(); i < packs; i += thread_count()) {
        const int64_t c = channel_of<NHWC>(g, i);
        const pack<float, WIDE> center = coefficient<WIDE, NHWC>(of.center, c);
        const pack<float, WIDE> scale = coefficient<WIDE, NHWC>(of.scale, c);
        const pack<float, WIDE> shift = coefficient<WIDE, NHWC>(of.shift, c);
        pack<float, WIDE> v = load<WIDE>(g.x, i);
        for (int k = 0; k < WIDE; k++) {
            v.at[k] = fmaf(v.at[k] - center.at[k], scale.at[k], shift.at[k]);
        }
        if (g.other != NULL) {
            const pack<float, WIDE> added = load<WIDE>(g.other, i);
            for (int k = 0; k < WIDE; k++) v.at[k] = kept<Number>(v.at[k]) + added.at[k];
        }
        if (relu) clamp_at_zero(&v);
        store(y, i, v);
    }
}

template <int WIDE, bool NHWC, class Number>
__global__ void apply_backward(norm_operands<Number> g, coefficients of, Number *dx) {
    const int64_t packs = g.channels * g.count / WIDE;
    for (int64_t i = thread_index(); i < packs; i += thread_count()) {
        const int64_t c = channel_of<NHWC>(g, i);
        const pack<float, WIDE> center = coefficient<WIDE, NHWC>(of.center, c);
        const pack<float, WIDE> scale = coefficient<WIDE, NHWC>(of.scale, c);
        const pack<float, WIDE> level = coefficient<WIDE, NHWC>(of.shift, c);
        const pack<float, WIDE> slope = coefficient<WIDE, NHWC>(of.slope, c);
        const pack<float, WIDE> x = load<WIDE>(g.x, i);
        pack<float, WIDE> d = masked_dy<WIDE>(g, i);
        if (g.dother != NULL) store(g.dother, i, d);
        if (dx == NULL) continue;
        for (int k = 0; k < WIDE; k++)
            d.at[k] = fmaf(center.at[k] - x.at[k], slope.at[k], d.at[k] - level.at[k]) * scale.at[k];
        store(dx, i, d);
    }
}

/* ---- host ---- */

static constexpr int64_t BLOCKS = 1024, MOST_SLICES = 512;
static constexpr int64_t BLOCK_CHANNELS = WARP * PACK;          /* per block, NHWC */
static constexpr int64_t PLANE_SLICE = 4096, POINT_SLICE = 256; /* the fewest elements of a channel in a slice */

/* The number of slices never falls when rows are added: scratch is booked for the most rows. */
int64_t slices_of(int64_t channels, int64_t count, bool nhwc) {
    const int64_t blocks = nhwc ? ceil_div(channels, BLOCK_CHANNELS) : channels;
    const int64_t most = ceil_div(count, nhwc ? POINT_SLICE : PLANE_SLICE);
    int64_t slices = ceil_div(BLOCKS, blocks);
    if (slices > most) slices = most;
    return slices < MOST_SLICES ? slices : MOST_SLICES;
}

template <class Number> struct job {
    const tdm_kernel_args *args;
    cudaStream_t stream;
    const tdm_batchnorm2d_attrs *attrs;
    norm_operands<Number> g; /* all but `inner` */
    bool nhwc, aligned;
    int64_t run; /* contiguous elements: of a channel in a row (PLAIN), of all channels of a point (NHWC) */
    int64_t slices;
    double *mean, *invstd, *saved_count;
    tdm_batchnorm2d_blocks blocks;
    coefficients of;
    sums *partial;

    norm_operands<Number> in_packs(int wide) const {
        norm_operands<Number> out = g;
        out.inner = divider_of(run / wide);
        return out;
    }
    bool has_packs(int wide) const {
        return aligned && run % wide == 0;
    }
};

template <class Number> job<Number> job_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const int64_t channels = desc->x[0].dim[1], plane = tdm__batchnorm2d_points(desc);
    job<Number> j = {};
    j.args = args;
    j.stream = tdm__cuda_device(args->device)->stream;
    j.attrs = (const tdm_batchnorm2d_attrs *)desc->attrs;
    j.nhwc = tdm__batchnorm2d_channels_last(desc, desc->x_layout[0]);
    j.run = j.nhwc ? channels : plane;
    j.aligned = is_aligned(args->x[0], args->y, args->dy, args->dx[0]);
    j.g.x = as<Number>(args->x[0]);
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_ADD)) {
        j.g.other = as<Number>(args->x[1]);
        j.g.dother = as<Number>(args->dx[1]);
        j.aligned = j.aligned && is_aligned(j.g.other, j.g.dother);
    }
    j.g.channels = channels;
    j.g.count = args->rows * plane;
    j.g.channel = divider_of(channels);
    j.slices = slices_of(channels, j.g.count, j.nhwc);
    j.mean = (double *)args->saved;
    j.invstd = j.mean != NULL ? j.mean + channels : NULL;
    j.saved_count = j.mean != NULL ? j.mean + 2 * channels : NULL;
    j.blocks = tdm__batchnorm2d_blocks_of(args);
    /* Each array of coefficients begins on a pack boundary; the partial sums follow. */
    const int64_t room = ceil_div(channels, PACK) * PACK;
    float *scratch = (float *)args->scratch;
    j.of = {scratch, scratch + room, scratch + 2 * room, scratch + 3 * room};
    j.partial = (sums *)(scratch + 4 * room);
    return j;
}

int lanes_for(int64_t packs) {
    int lanes = 1;
    while (lanes < WARP && lanes < packs) lanes *= 2;
    return lanes;
}

template <int WIDE, class Number, class Finish> tdm_status launch_sums(const job<Number> &j, const Finish &finish) {
    const unsigned slices = (unsigned)j.slices;
    const norm_operands<Number> g = j.in_packs(WIDE);
    if (j.nhwc) {
        const int lanes = lanes_for(g.inner.by);
        const dim3 grid((unsigned)ceil_div(g.inner.by, lanes), slices);
        auto kernel = sum_points<WIDE, Number, Finish>;
        TDM_LAUNCH(kernel, grid, THREADS, j.stream, g, finish, ceil_div(g.count, j.slices), lanes, j.partial);
    } else {
        auto kernel = sum_planes<WIDE, Number, Finish>;
        TDM_LAUNCH(kernel, dim3((unsigned)g.channels, slices), THREADS, j.stream, g, finish,
                   ceil_div(g.count / WIDE, j.slices), j.partial);
    }
    return TDM_OK;
}

template <class Number, class Finish>
tdm_status launch_finish(const job<Number> &j, const Finish &finish, int64_t slices) {
    const sums *partial = j.partial;
    TDM_LAUNCH(finish_channels<Finish>, blocks_for(j.g.channels, THREADS / WARP), THREADS, j.stream, finish, partial,
               j.g.channels, slices);
    return TDM_OK;
}

/* A pack has the same number of elements for float and bf16: sums in double need many registers, and so the order is
 * the same for both. */
template <class Number, class Finish> tdm_status sum_channels(const job<Number> &j, const Finish &finish) {
    if (j.has_packs(PACK))
        TDM_MODULE_TRY((launch_sums<PACK, Number, Finish>(j, finish)));
    else
        TDM_MODULE_TRY((launch_sums<1, Number, Finish>(j, finish)));
    return j.slices > 1 ? launch_finish(j, finish, j.slices) : TDM_OK;
}

template <class Number> forward_finish<Number> forward_finish_of(const job<Number> &j, bool of_batch) {
    const tdm_kernel_args *args = j.args;
    forward_finish<Number> f = {};
    f.attrs = *j.attrs;
    f.x = j.g.x;
    f.channel_step = j.nhwc ? 1 : j.run;
    f.count = (double)j.g.count;
    f.of_batch = of_batch;
    f.training = args->training;
    f.weight = args->param[0];
    f.bias = args->param[1];
    f.running_mean = args->buffer[0];
    f.running_variance = args->buffer[1];
    f.counter = args->counter;
    f.mean = j.mean;
    f.invstd = j.invstd;
    f.saved_count = j.saved_count;
    f.blocks = j.blocks;
    f.out = j.of;
    return f;
}

template <int WIDE, class Number> tdm_status launch_forward(const job<Number> &j, int64_t *counter) {
    const tdm_kernel_args *args = j.args;
    auto kernel = j.nhwc ? apply_forward<WIDE, true, Number> : apply_forward<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(j.g.channels * j.g.count / WIDE), THREADS, j.stream, j.in_packs(WIDE), j.of,
               as<Number>(args->y), tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU), counter);
    return TDM_OK;
}

template <int WIDE, class Number> tdm_status launch_backward(const job<Number> &j) {
    auto kernel = j.nhwc ? apply_backward<WIDE, true, Number> : apply_backward<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(j.g.channels * j.g.count / WIDE), THREADS, j.stream, j.in_packs(WIDE), j.of,
               as<Number>(j.args->dx[0]));
    return TDM_OK;
}

template <class Number> tdm_status apply_to_all(const job<Number> &j, int64_t *counter) {
    if (j.has_packs(PACK_OF<Number>)) return launch_forward<PACK_OF<Number>>(j, counter);
    return j.has_packs(PACK) ? launch_forward<PACK>(j, counter) : launch_forward<1>(j, counter);
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const job<Number> j = job_of<Number>(args);
    const bool of_batch = args->training || !j.attrs->track_running_stats;
    if (of_batch && tdm__batchnorm2d_is_alone(&j.blocks, j.g.count))
        TDM_MODULE_FAIL(TDM_E_CONFIG, TDM_BATCHNORM2D_LACKS_ROWS, args->desc->op, (long long)j.g.channels);
    const forward_finish<Number> finish = forward_finish_of(j, of_batch);
    const bool takes = of_batch && j.blocks.replicas <= 1;
    TDM_MODULE_TRY(takes ? sum_channels(j, finish) : launch_finish(j, finish, 0));
    return apply_to_all(j, args->training && j.attrs->track_running_stats ? args->counter : NULL);
}

template <class Number> tdm_status recompute(const tdm_kernel_args *args) {
    const job<Number> j = job_of<Number>(args);
    const forward_again<Number> finish = {forward_finish_of(j, false)};
    TDM_MODULE_TRY(launch_finish(j, finish, 0));
    return apply_to_all(j, NULL);
}

/* Sums, gradients of the parameters and the coefficients of dx. */
template <class Number> tdm_status sum_gradients(const job<Number> &j) {
    const tdm_kernel_args *args = j.args;
    backward_finish finish = {};
    finish.affine = j.attrs->affine;
    finish.weight = args->param[0];
    finish.mean = j.mean;
    finish.invstd = j.invstd;
    finish.saved_count = j.saved_count;
    finish.dweight = args->dparam[0];
    finish.dbias = args->dparam[1];
    finish.blocks = j.blocks;
    finish.out = j.of;
    return j.blocks.replicas > 1 ? launch_finish(j, finish, 0) : sum_channels(j, finish);
}

template <class Number> running_finish running_finish_of(const job<Number> &j) {
    running_finish finish = {};
    finish.affine = j.attrs->affine;
    finish.eps = j.attrs->eps;
    finish.weight = j.args->param[0];
    finish.running_variance = j.args->buffer[1];
    finish.out = j.of;
    return finish;
}

/* Of backward: with dy, and the y that a relu masks it by. */
template <class Number> job<Number> backward_job_of(const tdm_kernel_args *args) {
    job<Number> j = job_of<Number>(args);
    j.g.dy = as<Number>(args->dy);
    j.g.y = tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU) ? as<Number>(args->y) : NULL;
    return j;
}

template <class Number> tdm_status statistics(const tdm_kernel_args *args) {
    const job<Number> j = args->dy == NULL ? job_of<Number>(args) : backward_job_of<Number>(args);
    double *block = args->statistics + args->replica * tdm__batchnorm2d_block_numbers(j.g.channels);
    if (args->dy != NULL) return sum_channels(j, backward_block{j.mean, block});
    return sum_channels(j, forward_block<Number>{forward_finish_of(j, true), block});
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const job<Number> j = backward_job_of<Number>(args);
    const bool writes = args->dx[0] != NULL || j.g.dother != NULL;
    if (!writes && args->dparam[0] == NULL) return TDM_OK;
    if (args->training)
        TDM_MODULE_TRY(sum_gradients(j));
    else
        TDM_MODULE_TRY(launch_finish(j, running_finish_of(j), 0));
    if (!writes) return TDM_OK;
    if (j.has_packs(PACK_OF<Number>)) return launch_backward<PACK_OF<Number>>(j);
    return j.has_packs(PACK) ? launch_backward<PACK>(j) : launch_backward<1>(j);
}

} /* namespace */

namespace tdm_cuda {

bool batchnorm2d_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t channels = desc->x[0].dim[1], count = desc->x[0].dim[0] * tdm__batchnorm2d_points(desc);
    keep_layout(desc, fit);
    fit->epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    fit->saved_bytes = (size_t)tdm__batchnorm2d_block_numbers(channels) * sizeof(double);
    const int64_t slices = slices_of(channels, count, tdm__batchnorm2d_channels_last(desc, fit->x_layout[0]));
    fit->scratch_bytes = (size_t)(channels + PACK) * 4 * sizeof(float) + (size_t)(channels * slices) * sizeof(sums);
    return true;
}

tdm_status batchnorm2d_forward(const tdm_kernel_args *args) {
    return by_precision<forward<float>, forward<bf16>>(args);
}

tdm_status batchnorm2d_backward(const tdm_kernel_args *args) {
    return by_precision<backward<float>, backward<bf16>>(args);
}

tdm_status batchnorm2d_statistics(const tdm_kernel_args *args) {
    return by_precision<statistics<float>, statistics<bf16>>(args);
}

tdm_status batchnorm2d_recompute(const tdm_kernel_args *args) {
    return by_precision<recompute<float>, recompute<bf16>>(args);
}

} /* namespace tdm_cuda */

TDM_BATCHNORM2D_CUDA(batchnorm2d);
