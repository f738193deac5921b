/* Names and extents of the tensors of a safetensors header; see tensor_seen.h. */
#include "runtime/ckpt/tensor_seen.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/text/json.h"
#include "runtime/base/status.h"

/* The hash is seeded with numbers that the author of a file cannot know. So no file can make all names collide. */
tdm_status tdm__tensor_seen_open(tdm_tensor_seen *seen, const tdm_host *host, size_t room) {
    size_t entries = 64;
    while (entries < 2 * room) entries *= 2;
    *seen = (tdm_tensor_seen){.host = host, .entry_mask = entries - 1, .in_order = true};
    TDM_TRY(tdm__new(host, &seen->extent, room, sizeof(*seen->extent), "names of a safetensors header"));
    TDM_TRY(tdm__new(host, &seen->entry, entries, sizeof(*seen->entry), "names of a safetensors header"));
    seen->seed = (uint64_t)tdm__now_ns() ^ (uint64_t)(uintptr_t)seen->entry;
    return TDM_OK;
}

void tdm__tensor_seen_close(tdm_tensor_seen *seen) {
    if (seen->host == NULL) return;
    tdm__delete(seen->host, seen->extent);
    tdm__delete(seen->host, seen->entry);
    *seen = (tdm_tensor_seen){0};
}

/* Reads the name at byte name_at of the header again; "" if the file can no longer be read. */
static void read_name(const tdm_tensor_file *file, uint32_t name_at, char name[TDM_ST_MAX_NAME + 1]) {
    char text[6 * TDM_ST_MAX_NAME + 2]; /* enough if every byte is escaped, with two quotes */
    tdm_json json;
    size_t length, count = (size_t)(file->header_bytes - name_at);
    if (count > sizeof(text)) count = sizeof(text);
    name[0] = '\0';
    if (tdm__tensor_file_take(file, text, count, 8 + (uint64_t)name_at) != TDM_OK) return;
    tdm__json_open(&json, text, count, TDM_ST_DEPTH);
    if (!tdm__json_string(&json, name, TDM_ST_MAX_NAME + 1, &length)) name[0] = '\0';
}

bool tdm__tensor_seen_name(tdm_tensor_seen *seen, const tdm_tensor_file *file, const char *name, size_t length,
                           uint32_t name_at) {
    uint64_t hash = tdm__hash64(name, length, seen->seed);
    size_t at = (size_t)hash & seen->entry_mask;
    for (; seen->entry[at] != 0; at = (at + 1) & seen->entry_mask) {
        char other[TDM_ST_MAX_NAME + 1];
        const tdm_tensor_extent *extent = &seen->extent[seen->entry[at] - 1];
        if (extent->name_hash != hash) continue;
        read_name(file, extent->name_at, other);
        if (other[0] == '\0' || strcmp(other, name) == 0) return false;
    }
    seen->extent[seen->count++] = (tdm_tensor_extent){.name_hash = hash, .name_at = name_at};
    seen->entry[at] = (uint32_t)seen->count;
    return true;
}

void tdm__tensor_seen_extent(tdm_tensor_seen *seen, uint64_t begin, uint64_t bytes) {
    tdm_tensor_extent *extent = &seen->extent[seen->count - 1];
    extent->begin = begin;
    extent->bytes = bytes;
    if (begin != seen->last_end) seen->in_order = false;
    seen->last_end = begin + bytes;
}

static int order_extent(const void *a, const void *b) {
    const tdm_tensor_extent *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->name_at < y->name_at ? -1 : x->name_at > y->name_at;
}

static tdm_status misplaced(const tdm_tensor_file *file, const tdm_tensor_extent *extent, bool first, uint64_t end) {
    char name[TDM_ST_MAX_NAME + 1], printable[TDM_ST_PRINTABLE], before[TDM_ST_PRINTABLE];
    const char *fault = extent->begin < end ? "overlap" : "a hole";
    unsigned long long begins = extent->begin, ends = end;
    read_name(file, extent->name_at, name);
    tdm__printable(printable, name);
    if (first)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s: tensor '%s' begins at %llu, none before it", file->path, fault, printable,
                 begins);
    read_name(file, extent[-1].name_at, name);
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s: tensor '%s' begins at %llu, '%s' before it ends at %llu", file->path, fault,
             printable, begins, tdm__printable(before, name), ends);
}

tdm_status tdm__tensor_seen_covers(tdm_tensor_seen *seen, const tdm_tensor_file *file, uint64_t data_bytes) {
    unsigned long long data = data_bytes, end = seen->last_end;
    if (!seen->in_order) {
        end = 0;
        qsort(seen->extent, seen->count, sizeof(*seen->extent), order_extent);
        for (size_t i = 0; i < seen->count; i++) {
            const tdm_tensor_extent *extent = &seen->extent[i];
            if (extent->begin != end) return misplaced(file, extent, i == 0, end);
            end += extent->bytes;
        }
    }
    if (end == data) return TDM_OK;
    TDM_FAIL(
        TDM_E_CHECKPOINT,
        "%s: the tensors end at byte %llu of the data, the file has %llu: %llu bytes at its end belong to no tensor",
        file->path, end, data, data - end);
}
