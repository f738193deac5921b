/* The directory of a zip archive, as torch.save writes it: entries stored, not compressed; below 4 GiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ckpt/torch/torch_file.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, END_COMMENT = 65535 };

static uint32_t number(const uint8_t *at, int bytes) {
    uint32_t out = 0;
    for (int i = 0; i < bytes; i++) out |= (uint32_t)at[i] << (8 * i);
    return out;
}

static bool fail(char *why, const char *what) {
    snprintf(why, TDM_TORCH_WHY, "%s", what);
    return false;
}

static bool read_at(int fd, void *to, size_t count, uint64_t at) {
    size_t got = 0;
    while (got < count) {
        const ssize_t n = pread(fd, (char *)to + got, count - got, (off_t)(at + got));
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

uint32_t tdm__zip_crc(uint32_t crc, const void *bytes, size_t count) {
    static const uint32_t half[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ half[crc & 15];
        crc = crc >> 4 ^ half[crc & 15];
    }
    return ~crc;
}

/* The record at the end of the archive, which may have a comment behind it. */
static bool find_end(const tdm_zip *zip, const tdm_host *host, uint8_t end[END], char *why) {
    size_t count = zip->bytes < END + END_COMMENT ? (size_t)zip->bytes : END + END_COMMENT;
    uint8_t *tail = NULL;
    if (zip->bytes < END) return fail(why, "it is too short for a file of PyTorch");
    if (tdm__new(host, &tail, count, 1, "the end of the archive") != TDM_OK) return fail(why, "out of memory");
    bool found = read_at(zip->fd, tail, count, zip->bytes - count);
    size_t at = found ? count - END : 0;
    while (found && at > 0 && memcmp(tail + at, "PK\5\6", 4) != 0) at--;
    found = found && memcmp(tail + at, "PK\5\6", 4) == 0;
    if (found) memcpy(end, tail + at, END);
    tdm__delete(host, tail);
    return found || fail(why, "it ends before the archive does: it was cut, or is no zip archive");
}

/* Moves to where the entry's data begins: behind a header whose length only that header knows. */
static bool find_data(const tdm_zip *zip, tdm_zip_entry *entry, char *why) {
    uint8_t local[LOCAL];
    if (entry->header_at + LOCAL > zip->bytes || !read_at(zip->fd, local, LOCAL, entry->header_at) ||
        memcmp(local, "PK\3\4", 4) != 0)
        return fail(why, "an entry of the archive does not begin where its directory says");
    entry->at = entry->header_at + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    if (entry->at + entry->bytes > zip->bytes) return fail(why, "an entry of the archive reaches beyond its end");
    return true;
}

/* One record of the directory; *used: its length. */
static bool read_entry(tdm_zip *zip, const uint8_t *record, size_t left, size_t *used, char *why) {
    tdm_zip_entry *entry = &zip->entry[zip->count++];
    if (left < CENTRAL || memcmp(record, "PK\1\2", 4) != 0) return fail(why, "the archive's directory is damaged");
    const uint32_t method = number(record + 10, 2), packed = number(record + 20, 4), bytes = number(record + 24, 4),
                   name = number(record + 28, 2);
    *used = CENTRAL + name + number(record + 30, 2) + number(record + 32, 2);
    entry->header_at = number(record + 42, 4);
    entry->crc = number(record + 16, 4);
    entry->bytes = bytes;
    if (*used > left || name == 0 || name >= sizeof(entry->name) || memchr(record + CENTRAL, 0, name) != NULL)
        return fail(why, "the archive's directory is damaged");
    if (bytes == 0xffffffffu || packed == 0xffffffffu || entry->header_at == 0xffffffffu)
        return fail(why, "it is larger than 4 GiB; save it in parts");
    if ((number(record + 8, 2) & 1) != 0) return fail(why, "it is encrypted");
    if (method != 0 || packed != bytes)
        return fail(why, "its entries are compressed, which torch.save does not do; load and save it in PyTorch");
    memcpy(entry->name, record + CENTRAL, name);
    return find_data(zip, entry, why);
}

static int by_offset(const void *a, const void *b) {
    const tdm_zip_entry *x = a, *y = b;
    return x->header_at < y->header_at ? -1 : x->header_at > y->header_at;
}

static bool check_overlaps(tdm_zip *zip, char *why) {
    qsort(zip->entry, (size_t)zip->count, sizeof(*zip->entry), by_offset);
    for (int i = 1; i < zip->count; i++)
        if (zip->entry[i].header_at < zip->entry[i - 1].at + zip->entry[i - 1].bytes)
            return fail(why, "entries of the archive overlap");
    return true;
}

static bool read_directory(tdm_zip *zip, const tdm_host *host, const uint8_t end[END], uint8_t **directory, char *why) {
    const size_t bytes = number(end + 12, 4), at = number(end + 16, 4), entries = number(end + 10, 2);
    if (at == 0xffffffffu || entries == 0xffff) return fail(why, "it is larger than 4 GiB; save it in parts");
    if (entries == 0 || entries > TDM_TORCH_ENTRIES || at > zip->bytes || bytes > zip->bytes - at)
        return fail(why, "the archive's directory is damaged");
    if (tdm__new(host, directory, bytes, 1, "the archive's directory") != TDM_OK ||
        tdm__new(host, &zip->entry, entries, sizeof(*zip->entry), "the archive's entries") != TDM_OK)
        return fail(why, "out of memory");
    if (!read_at(zip->fd, *directory, bytes, at)) return fail(why, "it cannot be read");
    for (size_t i = 0, used = 0, next = 0; i < entries; i++, next += used)
        if (!read_entry(zip, *directory + next, bytes - next, &used, why)) return false;
    return check_overlaps(zip, why);
}

/* Formats before the archive, and archives of others. */
static bool check_kind(const tdm_zip *zip, char *why) {
    uint8_t head[512] = {0};
    const size_t count = zip->bytes < sizeof(head) ? (size_t)zip->bytes : sizeof(head);
    if (!read_at(zip->fd, head, count, 0)) return fail(why, "it cannot be read");
    if (memcmp(head, "PK\3\4", 4) == 0) return true;
    if (memcmp(head + 257, "ustar", 5) == 0 || memcmp(head, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9", 9) == 0)
        return fail(why, "it has the format of before PyTorch 1.6; load and save it in a newer PyTorch");
    return fail(why, "it is no file of torch.save: no zip archive");
}

bool tdm__zip_open(tdm_zip *out, const tdm_host *host, int fd, char why[TDM_TORCH_WHY]) {
    const off_t bytes = lseek(fd, 0, SEEK_END); /* fstat asks by a path, which a process without rights may not */
    uint8_t end[END], *directory = NULL;
    *out = (tdm_zip){.fd = fd};
    if (bytes < 0) return fail(why, "it is no regular file");
    out->bytes = (uint64_t)bytes;
    const bool good =
        check_kind(out, why) && find_end(out, host, end, why) && read_directory(out, host, end, &directory, why);
    tdm__delete(host, directory);
    if (!good) tdm__zip_close(out, host);
    return good;
}

/* All names of the archive begin with one folder. */
const tdm_zip_entry *tdm__zip_find(const tdm_zip *zip, const char *folder, const char *name) {
    for (int i = 0; i < zip->count; i++) {
        const char *slash = strchr(zip->entry[i].name, '/');
        if (slash == NULL || strncmp(slash + 1, folder, strlen(folder)) != 0) continue;
        if (strcmp(slash + 1 + strlen(folder), name) == 0) return &zip->entry[i];
    }
    return NULL;
}

void tdm__zip_close(tdm_zip *zip, const tdm_host *host) {
    tdm__delete(host, zip->entry);
    zip->entry = NULL;
    zip->count = 0;
}
