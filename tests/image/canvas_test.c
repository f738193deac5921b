/* The canvas against Pillow, on the cases of make_canvas_fixtures.py. Built three times: with
 * AVX512-VNNI, with the vectors of base/twin.h and without either, with the same results. */
#include "runtime/image/canvas.h"
#include "tests/support/tdm_test.h"

static void draw(tdm_canvas *canvas, int width, int height, int channels) {
    tdm_host host = *canvas->host;
    tdm_pixels *now = &canvas->now;
    now->width = width;
    now->height = height;
    now->channels = channels;
    CHECK_OK(tdm__pixels_room(&host, now, tdm__pixels_bytes(now)));
    unsigned char *at = now->data;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < channels; c++)
                *at++ = (unsigned char)(x * 5 + y * 3 * (c + 1) + (x * 7919 + y * 104729 + c * 1299709) % 61);
        }
    }
}

static tdm_status resize(tdm_canvas *canvas, const double p[6]) {
    return tdm__canvas_resize(canvas, (int)p[0], (int)p[1]);
}

static tdm_status crop(tdm_canvas *canvas, const double p[6]) {
    return tdm__canvas_crop(canvas, (int64_t)p[0], (int64_t)p[1], (int64_t)p[2], (int64_t)p[3]);
}

static tdm_status rotate(tdm_canvas *canvas, const double p[6]) {
    return tdm__canvas_rotate(canvas, p[0]);
}

static tdm_status sharpness(tdm_canvas *canvas, const double p[6]) {
    return tdm__canvas_sharpness(canvas, (float)p[0]);
}

#define NO_FAILURE(name, call)                                    \
    static tdm_status name(tdm_canvas *canvas, const double *p) { \
        (void)p;                                                  \
        call;                                                     \
        return TDM_OK;                                            \
    }
NO_FAILURE(flip, tdm__canvas_flip(canvas))
NO_FAILURE(brightness, tdm__canvas_brightness(canvas, (float)p[0]))
NO_FAILURE(contrast, tdm__canvas_contrast(canvas, (float)p[0]))
NO_FAILURE(saturation, tdm__canvas_saturation(canvas, (float)p[0]))
NO_FAILURE(hue, tdm__canvas_hue(canvas, p[0]))
NO_FAILURE(grey, tdm__canvas_gray(canvas))
NO_FAILURE(posterize, tdm__canvas_posterize(canvas, (int)p[0]))
NO_FAILURE(solarize, tdm__canvas_solarize(canvas, (int)p[0]))
NO_FAILURE(autocontrast, tdm__canvas_autocontrast(canvas))
NO_FAILURE(equalize, tdm__canvas_equalize(canvas))

static const struct {
    const char *name;
    tdm_status (*run)(tdm_canvas *canvas, const double *p);
} operations[] = {
    {"resize", resize},
    {"crop", crop},
    {"rotate", rotate},
    {"affine", tdm__canvas_affine},
    {"sharpness", sharpness},
    {"flip", flip},
    {"brightness", brightness},
    {"contrast", contrast},
    {"saturation", saturation},
    {"hue", hue},
    {"grey", grey},
    {"posterize", posterize},
    {"solarize", solarize},
    {"autocontrast", autocontrast},
    {"equalize", equalize},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static uint64_t fnv(const tdm_pixels *pixels) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < tdm__pixels_bytes(pixels); i++) hash = (hash ^ pixels->data[i]) * 0x100000001B3u;
    return hash;
}

static bool run_case(tdm_canvas *canvas, const char *line) {
    char name[32];
    int channels, width, height, to_width, to_height, i = 0;
    double p[6];
    unsigned long long hash;
    if (sscanf(line, "%31s %d %d %d %lf %lf %lf %lf %lf %lf %d %d %llx", name, &channels, &width, &height, &p[0], &p[1],
               &p[2], &p[3], &p[4], &p[5], &to_width, &to_height, &hash) != 13)
        return false;
    while (i < OPERATIONS && strcmp(operations[i].name, name) != 0) i++;
    if (i == OPERATIONS) return false;
    draw(canvas, width, height, channels);
    return operations[i].run(canvas, p) == TDM_OK && canvas->now.width == to_width && canvas->now.height == to_height &&
           fnv(&canvas->now) == hash;
}

TEST(as_pillow) {
    FILE *list = fopen(TDM_TEST_DATA "/canvas.txt", "r");
    char line[300];
    int lines = 0, wrong = 0;
    tdm_canvas canvas;
    REQUIRE(list != NULL);
    tdm__canvas_init(&canvas, tdm_host_default());
    for (; fgets(line, sizeof(line), list) != NULL; lines++) {
        if (run_case(&canvas, line)) continue;
        if (wrong++ < 20) fprintf(stderr, "not as Pillow: %s", line);
    }
    CHECK_INT(wrong, 0);
    CHECK(lines > 1000);
    fclose(list);
    tdm__canvas_deinit(&canvas);
}

TEST(refused) {
    tdm_canvas canvas;
    tdm__canvas_init(&canvas, tdm_host_default());
    draw(&canvas, 3, 3, 3);
    CHECK_STATUS(tdm__canvas_resize(&canvas, 0, 5), TDM_E_DATA);
    CHECK_STATUS(tdm__canvas_crop(&canvas, 0, 0, INT64_C(1) << 40, 1), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "cannot become 1099511627776 x 1 pixels");
    tdm__canvas_deinit(&canvas);
}

TEST(erased_and_in_planes) {
    static const unsigned char value[3] = {1, 2, 3};
    unsigned char out[12];
    tdm_canvas canvas;
    tdm__canvas_init(&canvas, tdm_host_default());
    draw(&canvas, 2, 2, 3);
    tdm__canvas_erase(&canvas, 1, 0, 1, 2, value);
    tdm__canvas_planes(&canvas, out);
    CHECK(out[1] == 1 && out[3] == 1 && out[5] == 2 && out[7] == 2 && out[9] == 3 && out[11] == 3);
    CHECK(out[0] == canvas.now.data[0] && out[4] == canvas.now.data[1] && out[10] == canvas.now.data[8]);
    tdm__canvas_deinit(&canvas);
}

/* A crop, a resize and a crop, written down first: the same bits from the window alone. */
static void check_framing(tdm_canvas *whole, tdm_canvas *framed, int width, int height, const int p[10]) {
    tdm_image_window window;
    draw(whole, width, height, 3);
    REQUIRE_OK(tdm__canvas_crop(whole, p[0], p[1], p[2], p[3]));
    REQUIRE_OK(tdm__canvas_resize(whole, p[4], p[5]));
    REQUIRE_OK(tdm__canvas_crop(whole, p[6], p[7], p[8], p[9]));
    tdm__framing_open(framed, width, height);
    REQUIRE_OK(tdm__canvas_crop(framed, p[0], p[1], p[2], p[3]));
    REQUIRE_OK(tdm__canvas_resize(framed, p[4], p[5]));
    REQUIRE_OK(tdm__canvas_crop(framed, p[6], p[7], p[8], p[9]));
    tdm__framing_window(framed, 1, &window);
    CHECK(window.x >= p[0] && window.y >= p[1] && window.width <= p[2] && window.height <= p[3]);
    draw(framed, width, height, 3);
    REQUIRE_OK(tdm__canvas_crop(framed, window.x, window.y, window.width, window.height));
    REQUIRE_OK(tdm__framing_finish(framed));
    CHECK_INT(framed->now.width, p[8]);
    CHECK_INT(framed->now.height, p[9]);
    CHECK(fnv(&framed->now) == fnv(&whole->now));
}

TEST(framings) {
    static const int cases[][10] = {{0, 0, 100, 80, 40, 32, 4, 3, 30, 20},  {10, 5, 60, 70, 28, 28, 0, 0, 28, 28},
                                    {10, 5, 60, 70, 28, 70, 3, 9, 20, 11},  {10, 5, 60, 70, 60, 35, 3, 9, 20, 11},
                                    {7, 9, 31, 22, 90, 61, 50, 30, 40, 31}, {0, 0, 100, 80, 90, 10, 13, 2, 31, 5},
                                    {3, 4, 50, 50, 50, 50, 8, 9, 20, 21},   {0, 0, 1, 1, 9, 7, 2, 2, 5, 4}};
    tdm_canvas whole, framed;
    tdm__canvas_init(&whole, tdm_host_default());
    tdm__canvas_init(&framed, tdm_host_default());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) check_framing(&whole, &framed, 100, 80, cases[i]);
    tdm__framing_open(&framed, 100, 80); /* what it cannot express */
    CHECK_STATUS(tdm__canvas_crop(&framed, 90, 0, 20, 20), TDM_E_UNSUPPORTED);
    CHECK_OK(tdm__canvas_resize(&framed, 10, 8));
    CHECK_STATUS(tdm__canvas_resize(&framed, 5, 4), TDM_E_UNSUPPORTED);
    tdm_image_window window;
    tdm__framing_window(&framed, 8, &window); /* 1/8 of it would be less than twice 10 x 8 */
    CHECK_INT(window.reduce, 4);
    CHECK_INT(window.width, 25);
    CHECK_INT(window.height, 20);
    tdm__canvas_deinit(&whole);
    tdm__canvas_deinit(&framed);
}

TEST_MAIN(RUN(as_pillow); RUN(refused); RUN(erased_and_in_planes); RUN(framings);)
