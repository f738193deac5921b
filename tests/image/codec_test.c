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
    return (tdm_image_decode){.bytes = bytes,
                              .count = count,
                              .host = tdm_host_default(),
                              .channels = channels,
                              .limits = TDM_IMAGE_LIMITS,
                              .room = make_room};
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
    const bool is_pillows = pixels.data == NULL || fnv(&pixels) == hash;
    CHECK(is_pillows);
    if (!is_pillows) fprintf(stderr, "  %s, %d channels\n", name, channels);
    CHECK_OK(codec->probe(tdm_host_default(), bytes, count, &info));
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

typedef struct asked {
    tdm_image_window window;
    int width, height, most; /* what the decoder said */
} asked;

static void choose(void *user, int width, int height, int most, tdm_image_window *out) {
    asked *a = user;
    a->width = width, a->height = height, a->most = most;
    if (a->window.width > 0)
        *out = a->window;
    else
        *out = (tdm_image_window){a->window.reduce, 0, 0, (width - 1) / a->window.reduce + 1,
                                  (height - 1) / a->window.reduce + 1};
}

static tdm_status make_pixels(void *user, tdm_pixels *pixels, size_t bytes) {
    (void)user;
    return make_room(NULL, pixels, bytes);
}

static tdm_pixels decode_window(const void *bytes, size_t count, int channels, asked *a) {
    tdm_image_decode call = call_of(bytes, count, channels);
    tdm_pixels pixels = {0};
    call.room = make_pixels;
    call.window = choose;
    call.user = a;
    CHECK_OK(codec->decode(&call, &pixels));
    return pixels;
}

/* A JPEG may be decoded smaller; sizes are rounded up. */
TEST(reduced) {
    size_t count;
    unsigned char *bytes = load("sampling0.jpg", &count); /* 37 x 23 */
    static const int cases[][3] = {{1, 37, 23}, {2, 19, 12}, {4, 10, 6}, {8, 5, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        asked a = {.window = {.reduce = cases[i][0]}};
        tdm_pixels pixels = decode_window(bytes, count, 3, &a);
        CHECK_INT(a.most, 8);
        CHECK_INT(a.width, 37);
        CHECK_INT(a.height, 23);
        CHECK_INT(pixels.width, cases[i][1]);
        CHECK_INT(pixels.height, cases[i][2]);
        free(pixels.data);
    }
    free(bytes);
}

static bool is_part(const tdm_pixels *part, const tdm_pixels *whole, const tdm_image_window *w) {
    const size_t row = (size_t)(w->width * whole->channels);
    if (part->width != w->width || part->height != w->height) return false;
    for (int y = 0; y < w->height; y++) {
        const size_t at = ((size_t)(w->y + y) * (size_t)whole->width + (size_t)w->x) * (size_t)whole->channels;
        if (memcmp(part->data + (size_t)y * row, whole->data + at, row) != 0) return false;
    }
    return true;
}

static void check_windows(const char *name, int channels, int reduce, int tries) {
    size_t count;
    uint32_t random = 12345;
    unsigned char *bytes = load(name, &count);
    asked all = {.window = {.reduce = reduce}};
    tdm_pixels whole = decode_window(bytes, count, channels, &all);
    for (int i = 0; i < tries; i++) {
        int part[4];
        for (int k = 0; k < 4; k++) part[k] = (int)((random = random * 1664525u + 1013904223u) >> 8);
        const int width = 1 + part[0] % whole.width, height = 1 + part[1] % whole.height;
        asked a = {.window = {reduce, part[2] % (whole.width - width + 1), part[3] % (whole.height - height + 1), width,
                              height}};
        tdm_pixels pixels = decode_window(bytes, count, channels, &a);
        const bool is_same = is_part(&pixels, &whole, &a.window);
        CHECK(is_same);
        if (!is_same) {
            fprintf(stderr, "  %s at 1/%d, %d channels: %d,%d %dx%d\n", name, reduce, channels, a.window.x, a.window.y,
                    width, height);
            i = tries;
        }
        free(pixels.data);
    }
    free(whole.data);
    free(bytes);
}

/* Every kind of file: a part that is decoded alone has the same bits. */
TEST(windows) {
    FILE *list = fopen(TDM_TEST_DATA "/codec.txt", "r");
    char line[200], name[64], last[64] = "";
    REQUIRE(list != NULL);
    while (fgets(line, sizeof(line), list) != NULL) {
        int channels, width;
        if (sscanf(line, "%63s %d %d", name, &channels, &width) != 3 || strcmp(name, last) == 0) continue;
        strcpy(last, name);
        for (int reduce = 1; reduce <= (strstr(name, ".jp") != NULL ? 8 : 1); reduce *= 2)
            check_windows(name, 3, reduce, 60);
        check_windows(name, 1, 1, 20);
    }
    fclose(list);
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
        REQUIRE_OK(codec->encode(tdm_host_default(), &pixels, put, &s));
        const tdm_image_decode call = call_of(s.bytes, s.count, channels);
        REQUIRE_OK(codec->decode(&call, &again));
        CHECK(memcmp(again.data, data, (size_t)(35 * channels)) == 0);
        free(again.data);
        s.count = sizeof(s.bytes) - 10; /* a sink that fails */
        CHECK_INT(codec->encode(tdm_host_default(), &pixels, put, &s), TDM_E_IO);
    }
}

static size_t largest;

static void *note_largest(void *user, size_t bytes, size_t align) {
    (void)user;
    if (bytes > largest) largest = bytes;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

/* A chunk's header may name more bytes than the file has: no memory is taken for them. */
TEST(chunk_beyond_the_file) {
    static const unsigned char bytes[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x0c\0\0\0\x07\x08\x02\0\0\0\xb3\xd0;s"
                                         "M\0\0\x1a"
                                         "eXIfMM\0*\0\0\0\x08";
    const tdm_host host = {.size = sizeof(host), .allocate = note_largest, .release = release};
    tdm_image_info info;
    largest = 0;
    CHECK_STATUS(codec->probe(&host, bytes, sizeof(bytes) - 1, &info), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "a PNG that is cut off");
    CHECK(largest > 0 && largest <= 2 << 20);
}

TEST(open_codec) {
    REQUIRE_OK(tdm__codec_open(&codec, tdm_host_default(), NULL));
}

TEST_MAIN(RUN(open_codec); RUN(as_pillow); RUN(every_length); RUN(reduced); RUN(windows); RUN(written_and_read);
          RUN(chunk_beyond_the_file);)
