/* Networks drawn at random give what onnxruntime gives (make_random.py, which also draws others and compares them). */
#include <math.h>

#include "runtime/graph/graph.h"
#include "tests/onnx/random.h"
#include "tests/onnx/read.h"

TEST(drawn_networks_give_what_onnxruntime_gives) {
    static float x[ROWS * MOST_WIDTH], y[ROWS * MOST_WIDTH];
    char onnx[400], model[300];
    snprintf(model, sizeof model, "%s/drawn.tandem", folder);
    for (int i = 0; i < DRAWN; i++) {
        snprintf(onnx, sizeof onnx, "%s/files/random_%d.onnx", TDM_TEST_DATA, networks[i].seed);
        char *text = text_of_onnx(onnx);
        if (text == NULL) fprintf(stderr, "seed %d: %s\n", networks[i].seed, tdm_error_message());
        REQUIRE(text != NULL);
        put_read(onnx, text, model);
        CHECK_INT(predict(model, 0, x, y).out, networks[i].width);
        for (int k = 0; k < 2 * networks[i].width; k++) {
            const float off = fabsf(networks[i].y[k] - y[k]);
            if (!(off < 1e-5f)) fprintf(stderr, "seed %d: output %d is off by %g\n", networks[i].seed, k, (double)off);
            CHECK(off < 1e-5f);
        }
        tdm_free(text);
    }
}

TEST_MAIN(test_folder_make(folder); RUN(drawn_networks_give_what_onnxruntime_gives); test_folder_remove(folder);)
