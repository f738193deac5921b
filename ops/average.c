/* Means over windows, summed in the order of the window's rows and columns. Forward sums in double. */
#include "ops/average.h"

#include <string.h>

#include "ops/dot.h"
#include "ops/window.h"

bool tdm__average_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = desc->x_layout[0];
    fit->scratch_bytes = (size_t)tdm__planes_of(&desc->y, 1, desc->x_layout[0]).inner * sizeof(double);
    return true;
}

/* y = (sum of x over the window) / divisor */
tdm_status tdm__average_forward(const tdm_kernel_args *args, tdm_span_fn span) {
    const tdm_kernel_desc *desc = args->desc;
    tdm_planes x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    tdm_planes y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    double *sum = args->scratch;
    const float *from = args->x[0];
    float *to = args->y;
    for (int64_t plane = 0; plane < y.count; plane++, from += x.height * x.width * x.inner) {
        for (int64_t p = 0; p < y.height; p++) {
            tdm_average_range rows = span(desc->attrs, 0, p, x.height, y.height);
            for (int64_t q = 0; q < y.width; q++, to += y.inner) {
                tdm_average_range columns = span(desc->attrs, 1, q, x.width, y.width);
                double divisor = (double)(rows.divisor * columns.divisor);
                memset(sum, 0, (size_t)y.inner * sizeof *sum);
                for (int64_t row = rows.begin; row < rows.end; row++)
                    for (int64_t column = columns.begin; column < columns.end; column++)
                        tdm__axpy(sum, 1.0, from + (row * x.width + column) * x.inner, x.inner);
                for (int64_t j = 0; j < y.inner; j++) to[j] = (float)(sum[j] / divisor);
            }
        }
    }
    return TDM_OK;
}

/* dx[each point of the window] += dy / divisor, in the order of the outputs, in float as PyTorch does */
tdm_status tdm__average_backward(const tdm_kernel_args *args, tdm_span_fn span) {
    const tdm_kernel_desc *desc = args->desc;
    tdm_planes x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    tdm_planes y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    const float *dy = args->dy;
    float *dx = args->dx[0];
    memset(dx, 0, (size_t)(x.count * x.height * x.width * x.inner) * sizeof *dx);
    for (int64_t plane = 0; plane < y.count; plane++, dx += x.height * x.width * x.inner) {
        for (int64_t p = 0; p < y.height; p++) {
            tdm_average_range rows = span(desc->attrs, 0, p, x.height, y.height);
            for (int64_t q = 0; q < y.width; q++, dy += y.inner) {
                tdm_average_range columns = span(desc->attrs, 1, q, x.width, y.width);
                float divisor = (float)(rows.divisor * columns.divisor);
                for (int64_t row = rows.begin; row < rows.end; row++)
                    for (int64_t column = columns.begin; column < columns.end; column++)
                        for (int64_t j = 0; j < y.inner; j++)
                            dx[(row * x.width + column) * x.inner + j] += dy[j] / divisor;
            }
        }
    }
    return TDM_OK;
}
