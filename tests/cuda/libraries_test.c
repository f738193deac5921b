/* The symbol tables of cublasLt and cuDNN against libraries that are absent, too old, incomplete or good. */
#include <dlfcn.h>

#include "runtime/backends/cuda/kit/cuda.h"
#include "runtime/backends/cuda/kit/cuda_libraries.h"
#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

/* On a machine that has CUDA the loader finds what a test wants to be absent. */
static bool installed(const char *name) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library != NULL) dlclose(library);
    return library != NULL;
}

TEST(good_libraries_are_opened) {
    tdm_cuda_libraries l;
    REQUIRE(tdm__cuda_libraries_open(&l, "/no/such/folder::" FAKES "/good"));
    CHECK_TEXT(l.blas_text, FAKES "/good/libcublasLt.so.13");
    CHECK_TEXT(l.dnn_text, FAKES "/good/libcudnn.so.9");
    CHECK_INT(l.blas.version, 130100);
    CHECK_INT(l.dnn.version, 90800);
    CHECK(l.blas.cublasLtMatmul != NULL);
    CHECK(l.dnn.cudnnConvolutionForward != NULL);
    CHECK_INT(l.blas.cublasLtGetVersion(), 130100);
    tdm__cuda_libraries_close(&l);
    CHECK(l.blas.handle == NULL && l.dnn.handle == NULL);
}

TEST(absence_lists_what_was_tried) {
    tdm_cuda_libraries l;
    if (installed("libcublasLt.so.13")) return;
    CHECK(!tdm__cuda_libraries_open(&l, "/no/such/folder:/nor/this"));
    CHECK_HAS(l.blas_text, "/no/such/folder/libcublasLt.so.13: ");
    CHECK_HAS(l.blas_text, "/nor/this/libcublasLt.so.13: ");
    CHECK_HAS(l.blas_text, "; libcublasLt.so.13: ");
    CHECK(!tdm__cuda_libraries_open(&l, NULL));
    CHECK(strstr(l.blas_text, ";") == NULL);
}

TEST(cudnn_may_be_absent) {
    tdm_cuda_libraries l;
    if (installed("libcudnn.so.9")) return;
    REQUIRE(tdm__cuda_libraries_open(&l, FAKES "/no_cudnn"));
    CHECK(l.dnn.handle == NULL);
    CHECK_HAS(l.dnn_text, FAKES "/no_cudnn/libcudnn.so.9: ");
    tdm__cuda_libraries_close(&l);
}

static void refused(const char *folder, const char *sentence) {
    tdm_cuda_libraries l;
    char folders[1024];
    if (!installed("libcublasLt.so.13")) {
        CHECK(!tdm__cuda_libraries_open(&l, folder));
        CHECK_HAS(l.blas_text, sentence);
    }
    snprintf(folders, sizeof folders, "%s:%s/good", folder, FAKES);
    REQUIRE(tdm__cuda_libraries_open(&l, folders));
    CHECK_TEXT(l.blas_text, FAKES "/good/libcublasLt.so.13");
    tdm__cuda_libraries_close(&l);
}

TEST(what_does_not_serve_is_passed_over) {
    refused(FAKES "/old", "/old/libcublasLt.so.13 is version 12.9.0, 13.0.0 or newer is needed");
    refused(FAKES "/incomplete", "/incomplete/libcublasLt.so.13 (version 13.1.0) has no cublasLtMatmul");
    refused(FAKES "/silent", "/silent/libcublasLt.so.13 has no cublasLtGetVersion");
}

TEST(long_lists_are_no_overrun) {
    static char folders[20000];
    tdm_cuda_libraries l;
    memset(folders, 'x', sizeof folders - 1);
    if (installed("libcublasLt.so.13")) return;
    CHECK(!tdm__cuda_libraries_open(&l, folders));
    for (size_t i = 200; i < sizeof folders - 1; i += 200) folders[i] = ':';
    CHECK(!tdm__cuda_libraries_open(&l, folders));
    CHECK(strlen(l.blas_text) < sizeof l.blas_text);
}

/* Before init only the loader is asked. */
TEST(the_environment_names_folders) {
    char why[1024] = "";
    if (installed("libcublasLt.so.13")) return;
    setenv("TANDEM_CUDA_LIBRARIES", FAKES "/old:" FAKES "/good", 1);
    CHECK(tdm__cuda_libraries(why, sizeof why) == NULL);
    CHECK_HAS(why, "cublasLt 13 was not found: libcublasLt.so.13: ");
    CHECK_HAS(why, "TANDEM_CUDA_LIBRARIES");
    CHECK(tdm__cuda_libraries(NULL, 0) == NULL);
    tdm__module_init(&tdm__host_calls);
    const tdm_cuda_libraries *l = tdm__cuda_libraries(why, sizeof why);
    REQUIRE(l != NULL);
    CHECK_TEXT(l->blas_text, FAKES "/good/libcublasLt.so.13");
    unsetenv("TANDEM_CUDA_LIBRARIES");
    CHECK(tdm__cuda_libraries(NULL, 0) == l);
}

TEST_MAIN(RUN(good_libraries_are_opened); RUN(absence_lists_what_was_tried); RUN(cudnn_may_be_absent);
          RUN(what_does_not_serve_is_passed_over); RUN(long_lists_are_no_overrun); RUN(the_environment_names_folders);)
