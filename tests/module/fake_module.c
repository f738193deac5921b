/* Modules that are good, broken or unwilling; CMakeLists.txt chooses by FAKE. */
#include <stdio.h>

#include <tandem/sys/module.h>

#define FAKE_GOOD 0
#define FAKE_OTHER_ABI 1
#define FAKE_UNWILLING 2
#define FAKE_MISNAMED 3
#define FAKE_UNPROBED 4
#define FAKE_NO_SYMBOL 5
#define FAKE_DNNL 6

#if FAKE == FAKE_NO_SYMBOL
TDM_API extern const int fake_nothing;
const int fake_nothing = 1;
#else

static const tdm_host_calls *host_calls;

static int probe(char *text, size_t bytes) {
    snprintf(text, bytes, FAKE == FAKE_UNWILLING ? "this processor has no flux capacitor" : "flux capacitor 1.21");
    return FAKE != FAKE_UNWILLING;
}

static void init(const tdm_host_calls *calls) {
    host_calls = calls;
}

/* Reports through the table that it was given: proof that init has run. */
static tdm_status forward(const tdm_kernel_args *args) {
    (void)args;
    return host_calls->fail(TDM_E_DEVICE, __FILE__, __LINE__, NULL, "fake kernel: out of %s", "plutonium");
}

static const tdm_kernel kernel = {.op = "relu", .variant = "fake", .forward = forward};
static const tdm_kernel *const kernels[] = {&kernel, NULL};

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = FAKE == FAKE_OTHER_ABI ? TDM_MODULE_ABI + 7 : TDM_MODULE_ABI,
    .name = FAKE == FAKE_MISNAMED ? "else"
            : FAKE == FAKE_DNNL   ? "dnnl"
                                  : FAKE_NAME,
    .probe = FAKE == FAKE_UNPROBED ? NULL : probe,
    .init = init,
    .kernels = kernels,
};
#endif
