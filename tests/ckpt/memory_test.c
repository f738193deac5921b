/* A file of tensors that is in memory: the same as on the disk, without a copy of what is in it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/ckpt/ckpt.h"
#include "runtime/ckpt/tensor_file.h"
#include "tests/ckpt/ckpt_support.h"
#include "tests/support/tdm_test.h"

static char path[300];
static float numbers[16] = {1, -2, 3.5f};
static int64_t counter = -123456789012;

static const tdm_tensor tensors[] = {
    {.name = "line", .dtype = TDM_ST_F32, .ndim = 2, .dim = {4, 4}, .bytes = 64, .data = numbers},
    {.name = "part", .dtype = TDM_ST_F32, .ndim = 1, .dim = {3}, .bytes = 12, .data = numbers},
    {.name = "count", .dtype = TDM_ST_I64, .ndim = 0, .bytes = 8, .data = &counter},
};
enum { COUNT = sizeof(tensors) / sizeof(tensors[0]) };

/* The second call finds the file of the first. */
static char *write_and_read(size_t *size) {
    static const char *const metadata[] = {"format", "pt", NULL};
    (void)tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, tensors, COUNT, metadata, NULL,
                                 NULL, NULL);
    return support_read(path, size);
}

TEST(tensors_lie_in_the_memory) {
    tdm_tensor_file *file;
    size_t size;
    char *bytes = write_and_read(&size);
    REQUIRE_OK(tdm__tensor_file_open_memory(&file, tdm_host_default(), bytes, size, "memory"));
    CHECK_INT(tdm__tensor_file_count(file), COUNT);
    CHECK_TEXT(tdm__tensor_file_get(file, 0)->name, "line"); /* what keeps the next on a cache line is first */
    for (int i = 0; i < COUNT; i++) {
        char got[64];
        const tdm_tensor *tensor = tdm__tensor_file_find(file, tensors[i].name);
        REQUIRE(tensor != NULL && tensor->bytes == tensors[i].bytes);
        CHECK((const char *)tensor->data == bytes + tensor->file_offset);
        CHECK(memcmp(tensor->data, tensors[i].data, tensor->bytes) == 0);
        CHECK_OK(tdm__tensor_file_read(file, tensor, got));
        CHECK(memcmp(got, tensors[i].data, tensor->bytes) == 0);
    }
    tdm__tensor_file_close(file);
    free(bytes);
}

TEST(no_part_of_it_is_a_file) {
    tdm_tensor_file *file;
    size_t size;
    char *bytes = write_and_read(&size);
    for (size_t part = 0; part < size; part++) {
        char *copy = malloc(part > 0 ? part : 1); /* of its own, so that a sanitizer sees its end */
        memcpy(copy, bytes, part);
        CHECK_STATUS(tdm__tensor_file_open_memory(&file, tdm_host_default(), copy, part, "memory"), TDM_E_CHECKPOINT);
        CHECK(file == NULL);
        CHECK_HAS(tdm_error_message(), "memory");
        free(copy);
    }
    free(bytes);
}

/* Its first bytes, the length of the header, may be those of an ONNX file: other programs write 08 02, which is 520. */
TEST(a_length_like_the_beginning_of_onnx_is_taken) {
    enum { HEADER = 0x208 };
    tdm_ckpt *ckpt;
    size_t size;
    uint64_t header, longer = HEADER;
    char *bytes = write_and_read(&size);
    memcpy(&header, bytes, 8);
    REQUIRE(header < HEADER);
    char *other = malloc(size + HEADER - header);
    memcpy(other, &longer, 8);
    memcpy(other + 8, bytes + 8, header);
    memset(other + 8 + header, ' ', HEADER - header);
    memcpy(other + 8 + HEADER, bytes + 8 + header, size - 8 - header);
    CHECK_OK(tdm__ckpt_open_memory(&ckpt, tdm_host_default(), other, size + HEADER - header));
    tdm__ckpt_close(ckpt);
    free(other);
    free(bytes);
}

TEST_MAIN(char folder[256]; test_folder_make(folder); snprintf(path, sizeof(path), "%s/t", folder);
          RUN(tensors_lie_in_the_memory); RUN(no_part_of_it_is_a_file);
          RUN(a_length_like_the_beginning_of_onnx_is_taken); test_folder_remove(folder);)
