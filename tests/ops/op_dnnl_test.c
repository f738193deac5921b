/* The kernels of the dnnl module against the reference kernels: all cases, layouts, settings.
 *
 * Tolerance: 1e-5 of the largest magnitude of each result. oneDNN sums in float, in an order of its own; the reference
 * in double. One unit in the last place is 6e-8, so this allows some 170 of them, and a wrong index or a missing term
 * is far outside. */
#include "ops/ops.h"
#include "runtime/module/module.h"
#include "tests/ops/op_conform.h"
#include "tests/ops/op_driver.h"
#include "tests/support/tdm_test.h"

static const double tolerance = 1e-5;

static const tdm_module *module(void) {
    static const tdm_module *found;
    tdm_module_report report;
    if (found != NULL) return found;
    if (tdm__module_find(&found, tdm_host_default(), "dnnl", NULL, &report) != TDM_OK || found == NULL)
        TEST_SKIP(report.text);
    return found;
}

TEST(settings) {
    for (const tdm_kernel *const *kernel = module()->kernels; *kernel != NULL; kernel++) {
        op_conform_count count = op_conform(*kernel, tolerance);
        printf("       %-20s %4d runs, %4d settings declined\n", (*kernel)->op, count.runs, count.declined);
        CHECK(count.runs > 0);
    }
}

TEST_MAIN(RUN(settings);)
