/* Archives beyond 4 GiB without so many bytes: numbers from `wide_from` on are written with 64 bits, and the reader,
 * which takes what torch.save writes of that size, finds every entry. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/ckpt/torch/zip_write.h"
#include "tests/ckpt/ckpt_support.h"

enum { ENTRIES = 4, LARGE = 3000 };
static const char *const name[ENTRIES] = {"data.pkl", "data/0", "data/1", "version"};
static const size_t size[ENTRIES] = {20, LARGE, 0, 2};

static char folder[256], path[300];
static uint8_t data[LARGE];

static void write_archive(uint64_t wide_from) {
    tdm_zip_out a = {.host = tdm_host_default(), .file = {.fd = -1}, .wide_from = wide_from};
    tdm__text_init(&a.directory, a.host);
    (void)unlink(path);
    for (size_t i = 0; i < LARGE; i++) data[i] = (uint8_t)(i * 7 + i / 256);
    REQUIRE_OK(tdm__out_open(&a.file, &tdm__file_system, NULL, path, 0, NULL));
    for (int i = 0; i < ENTRIES; i++) REQUIRE_OK(tdm__zip_add(&a, name[i], data, size[i]));
    REQUIRE_OK(tdm__zip_end(&a));
    tdm__text_deinit(&a.directory);
}

static void check_entries(void) {
    tdm_zip_file file = {.host = tdm_host_default(), .fd = open(path, O_RDONLY)};
    char why[TDM_ZIP_WHY] = "";
    uint8_t read[LARGE];
    tdm_zip zip;
    REQUIRE(tdm__zip_open(&zip, &file, why));
    CHECK(zip.count == ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        const tdm_zip_entry *entry = tdm__zip_find(&zip, "", name[i]);
        REQUIRE(entry != NULL && entry->data.bytes == size[i] && !entry->data.deflated);
        CHECK(entry->data.at % 64 == 0);
        CHECK_OK(tdm__zip_read(&file, &entry->data, read));
        CHECK(memcmp(read, data, size[i]) == 0);
    }
    tdm__zip_close(&zip);
    close(file.fd);
}

static int count(const char *bytes, size_t length, const char *what, size_t of) {
    int found = 0;
    for (size_t i = 0; i + of <= length; i++) found += memcmp(bytes + i, what, of) == 0;
    return found;
}

/* How many records of the directory, from its start to the end, say that a number is elsewhere. */
static int wide_sizes(const char *bytes, size_t length) {
    int found = 0;
    for (size_t i = 0; i + 46 <= length; i++)
        found +=
            memcmp(bytes + i, "PK\1\2", 4) == 0 && memcmp(bytes + i + 20, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 0;
    return found;
}

static int far_places(const char *bytes, size_t length) {
    int found = 0;
    for (size_t i = 0; i + 46 <= length; i++)
        found += memcmp(bytes + i, "PK\1\2", 4) == 0 && memcmp(bytes + i + 42, "\xff\xff\xff\xff", 4) == 0;
    return found;
}

static void check_written(uint64_t wide_from, int wide, int far, int ends) {
    size_t length;
    write_archive(wide_from);
    check_entries();
    char *bytes = support_read(path, &length);
    REQUIRE(bytes != NULL);
    CHECK(wide_sizes(bytes, length) == wide);
    CHECK(far_places(bytes, length) == far);
    CHECK(count(bytes, length, "PK\6\6", 4) == ends && count(bytes, length, "PK\6\7", 4) == ends);
    free(bytes);
}

TEST(numbers_that_need_64_bits) {
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/a.pt", folder);
    check_written(UINT32_MAX, 0, 0, 0);
    check_written(LARGE, 1, 2, 1); /* the large entry; those behind it; the directory */
    check_written(80, 1, 3, 1);
    check_written(0, ENTRIES, ENTRIES, 1);
    test_folder_remove(folder);
}

TEST_MAIN(RUN(numbers_that_need_64_bits);)
