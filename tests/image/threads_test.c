/* The module `image` from several threads at once, as the loader calls it: each gets the pixels, or the refusal, that
 * it gets alone. */
#include <pthread.h>
#include <stdbool.h>

#include "runtime/image/codec.h"
#include "tests/support/tdm_test.h"

enum { MOST = 200, THREADS = 4, ROUNDS = 3 };

typedef struct file {
    unsigned char *bytes;
    size_t count;
    int channels;
    unsigned long long hash; /* of the pixels; 0: it is refused */
} file;

static const tdm_image_ops *codec;
static file files[MOST];
static int file_count;

static tdm_status make_room(void *user, tdm_pixels *pixels, size_t bytes) {
    (void)user;
    free(pixels->data);
    pixels->data = malloc(bytes > 0 ? bytes : 1);
    pixels->room = bytes;
    return pixels->data != NULL ? TDM_OK : TDM_E_MEMORY;
}

static uint64_t fnv(const tdm_pixels *pixels) {
    uint64_t hash = 0xCBF29CE484222325u;
    const size_t count = (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
    for (size_t i = 0; i < count; i++) hash = (hash ^ pixels->data[i]) * 0x100000001B3u;
    return hash;
}

static bool is_as_alone(const file *of) {
    const tdm_image_decode call = {.bytes = of->bytes,
                                   .count = of->count,
                                   .host = tdm_host_default(),
                                   .channels = of->channels,
                                   .limits = TDM_IMAGE_LIMITS,
                                   .room = make_room};
    tdm_pixels pixels = {0};
    const tdm_status status = codec->decode(&call, &pixels);
    const bool good = of->hash == 0 ? status == TDM_E_DATA : status == TDM_OK && fnv(&pixels) == of->hash;
    free(pixels.data);
    return good;
}

/* A thread, and the file with which it begins. */
typedef struct worker {
    pthread_t thread;
    int first, faults;
} worker;

static void *decode_all(void *argument) {
    worker *own = argument;
    for (int i = 0; i < ROUNDS * file_count; i++) own->faults += !is_as_alone(&files[(own->first + i) % file_count]);
    return NULL;
}

static bool load(file *out, const char *name) {
    char path[512];
    snprintf(path, sizeof(path), "%s/files/%s", TDM_TEST_DATA, name);
    FILE *from = fopen(path, "rb");
    if (from == NULL) return false;
    fseek(from, 0, SEEK_END);
    out->count = (size_t)ftell(from);
    rewind(from);
    out->bytes = malloc(out->count + 1);
    const bool good = out->bytes != NULL && fread(out->bytes, 1, out->count, from) == out->count;
    fclose(from);
    return good;
}

static void load_all(void) {
    char line[400], name[100], says[300];
    int width, height;
    FILE *list = fopen(TDM_TEST_DATA "/codec.txt", "r");
    REQUIRE(list != NULL);
    while (file_count < MOST && fgets(line, sizeof(line), list) != NULL) {
        file *of = &files[file_count++];
        if (sscanf(line, "%99s refused %299[^\n]", name, says) == 2)
            of->channels = 3;
        else
            REQUIRE(sscanf(line, "%99s %d %d %d %llx", name, &of->channels, &width, &height, &of->hash) == 5);
        REQUIRE(load(of, name));
    }
    fclose(list);
}

TEST(threads_at_once) {
    worker workers[THREADS] = {0};
    REQUIRE_OK(tdm__codec_open(&codec, tdm_host_default(), NULL));
    load_all();
    REQUIRE(file_count > 90);
    for (int i = 0; i < THREADS; i++) {
        workers[i].first = i * file_count / THREADS;
        REQUIRE(pthread_create(&workers[i].thread, NULL, decode_all, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) CHECK_INT(workers[i].faults, 0);
    for (int i = 0; i < file_count; i++) free(files[i].bytes);
}

TEST_MAIN(RUN(threads_at_once);)
