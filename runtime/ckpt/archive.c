/* A checkpoint as one run of bytes: a tar archive (POSIX ustar) of its step directory, so that `tar xf` makes the
 * directory of it.
 *
 * For each file a block of 512 bytes: its name, `step-00000391/model.safetensors`, its size, and the sum of the block's
 * bytes; then the file, filled up to whole blocks. At the end two blocks of zeros, and nothing but zeros behind them. A
 * directory in front of its files is passed over: GNU tar writes one. */
#include "runtime/ckpt/archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"

enum { BLOCK = 512, SIZE_AT = 124, SIZE_BYTES = 12, SUM_AT = 148, SUM_BYTES = 8, KIND_AT = 156, MAGIC_AT = 257 };
enum { NAME_BYTES = 100, PREFIX_AT = 345, PREFIX_BYTES = 155, IN_BASE_256 = 0x80 };
static const char ustar[] = "ustar";

/* The sum of a header counts its own field as spaces. */
static unsigned sum_of(const unsigned char *block) {
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : block[i];
    return sum;
}

/* ---- writing: a file system that puts one file behind the other ---- */

static int put(tdm_archive *a, const void *bytes, size_t count) {
    if (a->failed) return -1;
    a->failed = a->to->pwrite(a->to->user, 0, bytes, count, 0) != (ssize_t)count;
    return a->failed ? -1 : 0;
}

/* Sizes beyond the 11 octal digits of the standard are written as GNU tar does. */
static int put_header(tdm_archive *a, uint64_t bytes) {
    char block[BLOCK + 1] = "";
    snprintf(block, NAME_BYTES, "%s/%s", a->folder, a->name);
    snprintf(block + 100, 8, "%07o", TDM_FILE_MODE & 0644);
    snprintf(block + 108, 8, "%07o", 0);
    snprintf(block + 116, 8, "%07o", 0);
    if (bytes >> 33 == 0) {
        snprintf(block + SIZE_AT, SIZE_BYTES, "%011llo", (unsigned long long)bytes);
    } else {
        block[SIZE_AT] = (char)IN_BASE_256;
        for (int i = 0; i < 8; i++) block[SIZE_AT + SIZE_BYTES - 1 - i] = (char)(bytes >> (8 * i) & 0xFF);
    }
    snprintf(block + 136, 12, "%011o", 0);
    block[KIND_AT] = '0';
    memcpy(block + MAGIC_AT, "ustar\00000", 9); /* the magic with its NUL, then version 00 */
    snprintf(block + SUM_AT, SUM_BYTES - 1, "%06o", sum_of((const unsigned char *)block));
    block[SUM_AT + SUM_BYTES - 1] = ' ';
    a->has_header = true;
    a->bytes = bytes;
    return put(a, block, BLOCK);
}

static int archive_open(void *user, int folder, const char *name, int flags, mode_t mode) {
    tdm_archive *a = user;
    (void)folder, (void)flags, (void)mode;
    a->name = name;
    a->has_header = false;
    return 0;
}

static int archive_allocate(void *user, int fd, off_t bytes) {
    (void)fd;
    return put_header(user, (uint64_t)bytes);
}

static ssize_t archive_write(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    (void)fd, (void)offset;
    return put(user, bytes, count) == 0 ? (ssize_t)count : -1;
}

static int archive_flush(void *user, int fd) {
    (void)user, (void)fd;
    return 0;
}

static int archive_close(void *user, int fd) {
    static const char zeros[BLOCK];
    tdm_archive *a = user;
    (void)fd;
    if (!a->has_header && put_header(a, 0) != 0) return -1;
    const size_t beyond = (size_t)(a->bytes % BLOCK);
    return beyond > 0 ? put(a, zeros, BLOCK - beyond) : 0;
}

static int archive_unlink(void *user, int folder, const char *name) {
    (void)folder, (void)name;
    ((tdm_archive *)user)->failed = true;
    return 0;
}

void tdm__archive_begin(tdm_archive *a, const tdm_file_ops *to, int64_t step) {
    *a = (tdm_archive){.to = to};
    tdm__step_name(a->folder, step);
    a->ops = (tdm_file_ops){.open = archive_open,
                            .pwrite = archive_write,
                            .allocate = archive_allocate,
                            .fsync = archive_flush,
                            .close = archive_close,
                            .unlink = archive_unlink,
                            .user = a};
}

tdm_status tdm__archive_end(tdm_archive *a) {
    static const char zeros[2 * BLOCK];
    return put(a, zeros, sizeof(zeros)) == 0 ? TDM_OK : tdm__file_fail("write", NULL, "the archive", errno);
}

/* ---- reading ---- */

bool tdm__archive_is(const void *bytes, size_t count) {
    return count >= BLOCK && memcmp((const char *)bytes + MAGIC_AT, ustar, sizeof(ustar) - 1) == 0;
}

static bool read_octal(const char *at, int width, uint64_t *out) {
    int i = 0;
    *out = 0;
    while (i < width && at[i] == ' ') i++;
    for (; i < width && at[i] >= '0' && at[i] <= '7'; i++) *out = *out << 3 | (uint64_t)(at[i] - '0');
    return i < width && (at[i] == '\0' || at[i] == ' ');
}

static bool read_size(const char *block, uint64_t *out) {
    const unsigned char *at = (const unsigned char *)block + SIZE_AT;
    if (at[0] != IN_BASE_256) return read_octal(block + SIZE_AT, SIZE_BYTES, out);
    *out = 0;
    for (int i = 1; i < SIZE_BYTES; i++) {
        if (*out >> 55 != 0) return false;
        *out = *out << 8 | at[i];
    }
    return true;
}

static bool is_zero(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) return false;
    }
    return true;
}

/* Which file the name is: TDM_CKPT_FILES for the manifest, -1 for none. */
static int find_part(const char *name) {
    int part = 0;
    while (part < TDM_CKPT_FILES && strcmp(name, tdm__ckpt_file_names[part]) != 0) part++;
    return part < TDM_CKPT_FILES || strcmp(name, TDM_CKPT_MANIFEST) == 0 ? part : -1;
}

/* The folder of the first entry is that of all. */
static tdm_status take_name(tdm_ckpt_memory *out, const char *block, size_t at, int *part) {
    char name[NAME_BYTES + 1], shown[TDM_ST_PRINTABLE];
    const bool is_folder = block[KIND_AT] == '5';
    int64_t step;
    snprintf(name, sizeof(name), "%.*s", NAME_BYTES, block);
    tdm__printable(shown, name);
    char *slash = strchr(name, '/');
    if (slash != NULL) *slash = '\0';
    *part = slash != NULL && !is_folder ? find_part(slash + 1) : -1;
    if (out->folder[0] == '\0' && tdm__step_of(name, &step)) snprintf(out->folder, sizeof(out->folder), "%.31s", name);
    const bool is_known = (is_folder ? slash != NULL && slash[1] == '\0' : *part >= 0) &&
                          strcmp(name, out->folder) == 0 && is_zero(block + PREFIX_AT, PREFIX_BYTES);
    if (!is_known)
        TDM_FAIL(
            TDM_E_CHECKPOINT,
            "memory: the archive's entry '%s' at byte %zu is not step-<step>/<file>, or is of another checkpoint than "
            "the entry before it",
            shown, at);
    if (*part >= 0 && out->file[*part].bytes != NULL)
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive has '%s' twice, at byte %zu again", shown, at);
    return TDM_OK;
}

static tdm_status read_entry(tdm_ckpt_memory *out, const char *bytes, size_t count, size_t *at) {
    const char *block = bytes + *at;
    uint64_t sum, size;
    int part;
    if (memcmp(block + MAGIC_AT, ustar, sizeof(ustar) - 1) != 0 || !read_octal(block + SUM_AT, SUM_BYTES, &sum) ||
        sum != sum_of((const unsigned char *)block) || !read_size(block, &size))
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive is damaged: its entry at byte %zu has a wrong sum or size",
                 *at);
    if ((block[KIND_AT] != '0' && block[KIND_AT] != '\0' && block[KIND_AT] != '5') ||
        (block[KIND_AT] == '5' && size != 0))
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive's entry at byte %zu is no plain file (type 0x%02x)", *at,
                 (unsigned char)block[KIND_AT]);
    TDM_TRY(take_name(out, block, *at, &part));
    const size_t left = count - *at - BLOCK;
    if (size > left || tdm__round_up(size, BLOCK) > left)
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive is cut short: its entry at byte %zu has %llu bytes, %zu follow",
                 *at, (unsigned long long)size, left);
    const size_t filled = tdm__round_up(size, BLOCK) - size;
    if (!is_zero(block + BLOCK + size, filled))
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive is damaged behind its entry at byte %zu: only zeros fill it up",
                 *at);
    if (part >= 0) {
        out->file[part].bytes = block + BLOCK;
        out->file[part].count = size;
    }
    *at += BLOCK + (size_t)size + filled;
    return TDM_OK;
}

tdm_status tdm__archive_read(tdm_ckpt_memory *out, const void *memory, size_t count) {
    const char *bytes = memory;
    size_t at = 0;
    *out = (tdm_ckpt_memory){.folder = ""};
    while (count - at >= BLOCK && !is_zero(bytes + at, BLOCK)) TDM_TRY(read_entry(out, bytes, count, &at));
    if (count - at < 2 * BLOCK)
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: the archive is cut short: it has no end after its %zu bytes", count);
    if (!is_zero(bytes + at, count - at))
        TDM_FAIL(TDM_E_CHECKPOINT, "memory: something follows the end of the archive, at byte %zu", at);
    return TDM_OK;
}
