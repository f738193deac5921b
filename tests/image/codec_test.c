/* The module `image` against Pillow, on the files of make_fixtures.py. */
#include "runtime/base/memory.h"
#include "runtime/image/codec.h"
#include "tests/support/tdm_test.h"

static const tdm_image_ops *codec;

static tdm_status make_room(void *user, tdm_pixels *pixels, size_t bytes) {
    (void)user;
    free(pixels->data);
    pixels->data = malloc(bytes > 0 ? bytes : 1);
    pixels->room = bytes;
    return pixels->data != NULL ? TDM_OK : TDM_E_MEMORY;
}

static unsigned char *load(const char *name, size_t *count) {
    char path[512];
    snprintf(path, sizeof(path), "%s/files/%s", TDM_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(99);
    }
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*count + 1); /* exactly what the file has: reading beyond it would be found */
    if (fread(bytes, 1, *count, file) != *count) exit(99);
    fclose(file);
    return realloc(bytes, *count > 0 ? *count : 1);
}

static uint64_t fnv(const tdm_pixels *pixels) {
    uint64_t hash = 0xCBF29CE484222325u;
    const size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
    for (size_t i = 0; i < count; i++) hash = (hash ^ pixels->data[i]) * 0x100000001B3u;
    return hash;
}

static tdm_image_decode call_of(const void *bytes, size_t count, int channels) {
    return (tdm_image_decode){
        .bytes = bytes, .count = count, .channels = channels, .limits = TDM_IMAGE_LIMITS, .room = make_room};
}

static void check_good(const char *name, int channels, int width, int height, unsigned long long hash) {
    size_t count;
    unsigned char *bytes = load(name, &count);
    const tdm_image_decode call = call_of(bytes, count, channels);
    tdm_pixels pixels = {0};
    tdm_image_info info;
    CHECK_OK(codec->decode(&call, &pixels));
    CHECK_INT(pixels.width, width);
    CHECK_INT(pixels.height, height);
    CHECK_INT(pixels.channels, channels);
    if (pixels.data != NULL && fnv(&pixels) != hash) {
        CHECK(!"the pixels are Pillow's");
        fprintf(stderr, "  %s, %d channels\n", name, channels);
    }
    CHECK_OK(codec->probe(bytes, count, &info));
    CHECK_INT(info.orientation >= 5 ? info.height : info.width, width);
    free(pixels.data);
    free(bytes);
}

static void check_refused(const char *name, const char *says) {
    size_t count;
    unsigned char *bytes = load(name, &count);
    const tdm_image_decode call = call_of(bytes, count, 3);
    tdm_pixels pixels = {0};
    CHECK_STATUS(codec->decode(&call, &pixels), TDM_E_DATA);
    if (strstr(tdm_error_message(), says) == NULL) fprintf(stderr, "  %s\n", name);
    CHECK_HAS(tdm_error_message(), says);
    free(pixels.data);
    free(bytes);
}

TEST(as_pillow) {
    char line[400], name[100], says[300];
    int channels, width, height, lines = 0;
    unsigned long long hash;
    FILE *list = fopen(TDM_TEST_DATA "/codec.txt", "r");
    REQUIRE(list != NULL);
    while (fgets(line, sizeof(line), list) != NULL) {
        if (sscanf(line, "%99s refused %299[^\n]", name, says) == 2) {
            check_refused(name, says);
        } else {
            REQUIRE(sscanf(line, "%99s %d %d %d %llx", name, &channels, &width, &height, &hash) == 5);
            check_good(name, channels, width, height, hash);
        }
        lines++;
    }
    fclose(list);
    CHECK(lines > 90);
}

/* Every length: an error or, where only the end of the file is missing, the picture; under ASan no byte too many. */
TEST(every_length) {
    static const char *const names[] = {"sampling2.jpg", "progressive0.jpg", "rgb.png", "interlaced.png", "cmyk.jpg"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t count;
        unsigned char *bytes = load(names[i], &count);
        tdm_pixels pixels = {0};
        for (size_t cut = 0; cut < count; cut++) {
            unsigned char *part = malloc(cut > 0 ? cut : 1);
            memcpy(part, bytes, cut);
            const tdm_image_decode call = call_of(part, cut, 3);
            const tdm_status status = codec->decode(&call, &pixels);
            CHECK(status == TDM_E_DATA || (status == TDM_OK && cut + 30 > count));
            free(part);
        }
        free(pixels.data);
        free(bytes);
    }
}

/* A JPEG may be decoded smaller, never below what is asked for. */
TEST(scaled) {
    size_t count;
    unsigned char *bytes = load("sampling0.jpg", &count); /* 37 x 23 */
    static const struct {
        int least_width, least_height, width, height;
    } cases[] = {{0, 0, 37, 23}, {37, 23, 37, 23}, {19, 1, 37, 23}, {18, 11, 19, 12},
                 {9, 5, 10, 6},  {1, 1, 5, 3},     {1, 3, 10, 6}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_image_decode call = call_of(bytes, count, 3);
        tdm_pixels pixels = {0};
        call.least_width = cases[i].least_width;
        call.least_height = cases[i].least_height;
        REQUIRE_OK(codec->decode(&call, &pixels));
        CHECK_INT(pixels.width, cases[i].width);
        CHECK_INT(pixels.height, cases[i].height);
        free(pixels.data);
    }
    free(bytes);
}

typedef struct sink {
    unsigned char bytes[4096];
    size_t count;
} sink;

static tdm_status put(void *user, const void *bytes, size_t count) {
    sink *s = user;
    if (s->count + count > sizeof(s->bytes)) return TDM_E_IO;
    memcpy(s->bytes + s->count, bytes, count);
    s->count += count;
    return TDM_OK;
}

TEST(written_and_read) {
    for (int channels = 1; channels <= 3; channels += 2) {
        unsigned char data[7 * 5 * 3];
        for (size_t i = 0; i < sizeof(data); i++) data[i] = (unsigned char)(i * 11);
        const tdm_pixels pixels = {.width = 7, .height = 5, .channels = channels, .data = data};
        tdm_pixels again = {0};
        sink s = {.count = 0};
        REQUIRE_OK(codec->encode(&pixels, put, &s));
        const tdm_image_decode call = call_of(s.bytes, s.count, channels);
        REQUIRE_OK(codec->decode(&call, &again));
        CHECK(memcmp(again.data, data, (size_t)(35 * channels)) == 0);
        free(again.data);
        s.count = sizeof(s.bytes) - 10; /* a sink that fails */
        CHECK_INT(codec->encode(&pixels, put, &s), TDM_E_IO);
    }
}

TEST(open_codec) {
    REQUIRE_OK(tdm__codec_open(&codec, tdm_host_default(), NULL));
}

TEST_MAIN(RUN(open_codec); RUN(as_pillow); RUN(every_length); RUN(scaled); RUN(written_and_read);)
