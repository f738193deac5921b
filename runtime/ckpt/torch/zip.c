/* The directory of a zip archive. A number that does not fit its 16 or 32 bits is all ones there, and is in a record of
 * zip64: of the entry, or of the archive's end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/ckpt/torch/zip.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, END_COMMENT = 65535, END64 = 56, LOCATOR = 20 };
#define ALL16 0xffffu
#define ALL32 0xffffffffu

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t out = 0;
    for (int i = 0; i < bytes; i++) out |= (uint64_t)at[i] << (8 * i);
    return out;
}

static bool fail(char *why, const char *what) {
    snprintf(why, TDM_ZIP_WHY, "%s", what);
    return false;
}

/* What the end of the archive says of its directory. */
typedef struct ending {
    uint64_t at, bytes, entries;
} ending;

/* The end's record of zip64, which a locator in front of the end's own record points to. */
static bool read_end64(const tdm_zip *zip, uint64_t end_at, ending *out, char *why) {
    uint8_t locator[LOCATOR], end[END64];
    if (end_at < LOCATOR || !tdm__zip_read_at(zip->file->fd, locator, LOCATOR, end_at - LOCATOR) ||
        memcmp(locator, "PK\6\7", 4) != 0) {
        if (out->at != ALL32 && out->bytes != ALL32) return true; /* just so many entries */
        return fail(why, "the archive's directory is damaged");
    }
    const uint64_t at = number(locator + 8, 8);
    if (at > end_at || end_at - at < END64 + LOCATOR || !tdm__zip_read_at(zip->file->fd, end, END64, at) ||
        memcmp(end, "PK\6\6", 4) != 0)
        return fail(why, "the archive's directory is damaged");
    if (out->entries == ALL16) out->entries = number(end + 32, 8);
    if (out->bytes == ALL32) out->bytes = number(end + 40, 8);
    if (out->at == ALL32) out->at = number(end + 48, 8);
    return true;
}

/* The record at the end of the archive, which may have a comment behind it. */
static bool read_end(const tdm_zip *zip, ending *out, char *why) {
    const tdm_host *host = zip->file->host;
    size_t count = zip->bytes < END + END_COMMENT ? (size_t)zip->bytes : END + END_COMMENT;
    uint8_t *tail = NULL;
    if (zip->bytes < END) return fail(why, "it is too short for a file of PyTorch");
    if (tdm__new(host, &tail, count, 1, "the end of the archive") != TDM_OK) return fail(why, "out of memory");
    bool found = tdm__zip_read_at(zip->file->fd, tail, count, zip->bytes - count);
    size_t at = found ? count - END : 0;
    while (found && at > 0 && memcmp(tail + at, "PK\5\6", 4) != 0) at--;
    found = found && memcmp(tail + at, "PK\5\6", 4) == 0;
    if (found)
        *out = (ending){
            .at = number(tail + at + 16, 4), .bytes = number(tail + at + 12, 4), .entries = number(tail + at + 10, 2)};
    tdm__delete(host, tail);
    if (!found) return fail(why, "it ends before the archive does: it was cut, or is no zip archive");
    if (out->at != ALL32 && out->bytes != ALL32 && out->entries != ALL16) return true;
    return read_end64(zip, zip->bytes - count + at, out, why);
}

/* Moves to where the entry's data begins: behind a header whose length only that header knows. */
static bool find_data(const tdm_zip *zip, tdm_zip_entry *entry, char *why) {
    uint8_t local[LOCAL];
    if (zip->bytes < LOCAL || entry->header_at > zip->bytes - LOCAL ||
        !tdm__zip_read_at(zip->file->fd, local, LOCAL, entry->header_at) || memcmp(local, "PK\3\4", 4) != 0)
        return fail(why, "an entry of the archive does not begin where its directory says");
    tdm_zip_data *data = &entry->data;
    data->at = entry->header_at + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    if (data->at > zip->bytes || data->packed > zip->bytes - data->at)
        return fail(why, "an entry of the archive reaches beyond its end");
    if (data->deflated ? data->bytes / TDM_ZIP_EXPANDS > data->packed : data->bytes != data->packed)
        return fail(why, "an entry of the archive says that it holds more than its bytes can");
    return true;
}

/* Numbers that the record has no room for are in its field of zip64, in this order. */
static bool read_wide(tdm_zip_entry *entry, const uint8_t *field, size_t bytes, char *why) {
    uint64_t *const wide[] = {&entry->data.bytes, &entry->data.packed, &entry->header_at};
    const uint8_t *at = NULL;
    size_t left = 0;
    for (size_t next = 0; at == NULL && next + 4 <= bytes; next += 4 + left) {
        left = (size_t)number(field + next + 2, 2);
        if (number(field + next, 2) == 1 && left <= bytes - next - 4) at = field + next + 4;
    }
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        if (*wide[i] != ALL32) continue;
        if (at == NULL || left < 8) return fail(why, "the archive's directory is damaged");
        *wide[i] = number(at, 8);
        at += 8;
        left -= 8;
    }
    return true;
}

/* One record of the directory; *used: its length. */
static bool read_entry(tdm_zip *zip, const uint8_t *record, size_t left, size_t *used, char *why) {
    enum { STORED = 0, DEFLATED = 8 };
    tdm_zip_entry *entry = &zip->entry[zip->count++];
    if (left < CENTRAL || memcmp(record, "PK\1\2", 4) != 0) return fail(why, "the archive's directory is damaged");
    const size_t name = (size_t)number(record + 28, 2), extra = (size_t)number(record + 30, 2);
    const uint64_t method = number(record + 10, 2);
    *used = CENTRAL + name + extra + (size_t)number(record + 32, 2);
    entry->header_at = number(record + 42, 4);
    entry->data = (tdm_zip_data){.packed = number(record + 20, 4),
                                 .bytes = number(record + 24, 4),
                                 .crc = (uint32_t)number(record + 16, 4),
                                 .deflated = method == DEFLATED};
    if (*used > left || name == 0 || name >= sizeof(entry->name) || memchr(record + CENTRAL, 0, name) != NULL)
        return fail(why, "the archive's directory is damaged");
    if ((number(record + 8, 2) & 1) != 0) return fail(why, "it is encrypted");
    if (method != STORED && method != DEFLATED)
        return fail(why, "its entries are compressed, but not by deflate; load and save it in PyTorch");
    memcpy(entry->name, record + CENTRAL, name);
    return read_wide(entry, record + CENTRAL + name, extra, why) && find_data(zip, entry, why);
}

static void swap(tdm_zip_entry *a, tdm_zip_entry *b) {
    const tdm_zip_entry kept = *a;
    *a = *b;
    *b = kept;
}

/* Moves entry `at` down until none below it in the heap of `count` entries lies further back in the file. */
static void sift(tdm_zip_entry *heap, int at, int count) {
    for (int child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
        if (child + 1 < count && heap[child].header_at < heap[child + 1].header_at) child++;
        if (heap[child].header_at <= heap[at].header_at) return;
        swap(&heap[at], &heap[child]);
    }
}

/* A heap sort, because qsort takes memory of the C library: see confined.h. */
static void sort_by_offset(tdm_zip_entry *entry, int count) {
    for (int i = count / 2 - 1; i >= 0; i--) sift(entry, i, count);
    for (int i = count - 1; i > 0; i--) {
        swap(&entry[0], &entry[i]);
        sift(entry, 0, i);
    }
}

static bool check_overlaps(tdm_zip *zip, char *why) {
    sort_by_offset(zip->entry, zip->count);
    for (int i = 1; i < zip->count; i++)
        if (zip->entry[i].header_at < zip->entry[i - 1].data.at + zip->entry[i - 1].data.packed)
            return fail(why, "entries of the archive overlap");
    return true;
}

static bool read_directory(tdm_zip *zip, const ending *end, uint8_t **directory, char *why) {
    const tdm_host *host = zip->file->host;
    if (end->entries == 0 || end->entries > TDM_ZIP_ENTRIES || end->at > zip->bytes ||
        end->bytes > zip->bytes - end->at || end->bytes / CENTRAL < end->entries)
        return fail(why, "the archive's directory is damaged");
    if (tdm__new(host, directory, end->bytes, 1, "the archive's directory") != TDM_OK ||
        tdm__new(host, &zip->entry, end->entries, sizeof(*zip->entry), "the archive's entries") != TDM_OK)
        return fail(why, "out of memory");
    if (!tdm__zip_read_at(zip->file->fd, *directory, end->bytes, end->at)) return fail(why, "it cannot be read");
    for (size_t i = 0, used = 0, next = 0; i < end->entries; i++, next += used)
        if (!read_entry(zip, *directory + next, end->bytes - next, &used, why)) return false;
    return check_overlaps(zip, why);
}

/* Formats before the archive, and archives of others. */
static bool check_kind(const tdm_zip *zip, char *why) {
    uint8_t head[512] = {0};
    const size_t count = zip->bytes < sizeof(head) ? (size_t)zip->bytes : sizeof(head);
    if (!tdm__zip_read_at(zip->file->fd, head, count, 0)) return fail(why, "it cannot be read");
    if (memcmp(head, "PK\3\4", 4) == 0) return true;
    if (memcmp(head + 257, "ustar", 5) == 0 || memcmp(head, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9", 9) == 0)
        return fail(why, "it has the format of before PyTorch 1.6; load and save it in a newer PyTorch");
    return fail(why, "it was not written by torch.save: no zip archive");
}

bool tdm__zip_open(tdm_zip *out, const tdm_zip_file *file, char why[TDM_ZIP_WHY]) {
    const off_t bytes = lseek(file->fd, 0, SEEK_END); /* fstat asks by a path, which a process without rights may not */
    uint8_t *directory = NULL;
    ending end = {0};
    *out = (tdm_zip){.file = file};
    if (bytes < 0) return fail(why, "it is no regular file");
    out->bytes = (uint64_t)bytes;
    const bool good = check_kind(out, why) && read_end(out, &end, why) && read_directory(out, &end, &directory, why);
    tdm__delete(file->host, directory);
    if (!good) tdm__zip_close(out);
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

void tdm__zip_close(tdm_zip *zip) {
    tdm__delete(zip->file->host, zip->entry);
    zip->entry = NULL;
    zip->count = 0;
}
