/* MANIFEST.json: the size and the XXH3-128 hash of every file of a checkpoint, and the hash of every tensor.
 *
 *   line 1      {
 *   line 2        "xxh3": "<32 hex digits>",    the hash of every byte after this line, so that the manifest itself is
 *                                               checked
 *   the rest      "format": "tandem.checkpoint", "version": 1, "files": {name: {"bytes": n, "xxh3": hash, "tensors":
 *                 {name: hash, ...}}, ...}}     "tensors" only for the files of tensors
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/text/json.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"

static const char first_lines[] = "{\n  \"xxh3\": \"";
static const char format_name[] = "tandem.checkpoint";

enum { DIGITS = TDM_HASH_TEXT - 1, DIGITS_AT = sizeof(first_lines) - 1, GUARDED_AT = DIGITS_AT + DIGITS + 3 };
enum { MAX_BYTES = TDM_CKPT_TENSORS * TDM_ST_MAX_HEADER }; /* for each file of tensors, less than its header */

static bool has_tensors(int part) {
    return part < TDM_CKPT_TENSORS;
}

static void put_hash(tdm_json_out *to, const char *key, tdm_hash128 hash) {
    char digits[TDM_HASH_TEXT];
    tdm__hash_print(digits, hash);
    tdm__json_put(to, "%s:%s", key, digits);
}

void tdm__manifest_print(tdm_text *out, const tdm_manifest *manifest, const tdm_tensor *const tensors[TDM_CKPT_TENSORS],
                         const int counts[TDM_CKPT_TENSORS]) {
    char digits[TDM_HASH_TEXT];
    tdm_json_out json = tdm__json_out(out, " ");
    tdm__json_put(&json, "{\n");
    put_hash(&json, "xxh3", (tdm_hash128){0}); /* filled in at the end, when the hash is known */
    tdm__json_put(&json, "format:%s version:%d files:{\n", format_name, TDM_CKPT_VERSION);
    for (int part = 0; part < TDM_CKPT_FILES; part++) {
        const tdm_manifest_file *file = &manifest->file[part];
        if (!file->listed) continue;
        tdm__json_put(&json, "%s:{\n bytes:%llu", tdm__ckpt_file_names[part], (unsigned long long)file->bytes);
        put_hash(&json, "xxh3", file->hash);
        if (file->tensor_hash != NULL) {
            tdm__json_put(&json, "tensors:{\n");
            for (int i = 0; i < counts[part]; i++) put_hash(&json, tensors[part][i].name, file->tensor_hash[i]);
            tdm__json_put(&json, "}");
        }
        tdm__json_put(&json, "}");
    }
    tdm__json_put(&json, "}}\n");
    if (out->failed) return;
    tdm__hash_print(digits, tdm__hash(out->data + GUARDED_AT, out->length - GUARDED_AT));
    memcpy(out->data + DIGITS_AT, digits, DIGITS);
}

/* ---- reading ---- */

typedef struct manifest_reader {
    tdm_ckpt *ckpt;
    tdm_json json;
    const char *path;
    char name[TDM_ST_MAX_NAME + 1];
    unsigned char window[TDM_JSON_WINDOW];
} manifest_reader;

static tdm_status json_fault(const manifest_reader *reader) {
    if (reader->json.error != 0) return tdm__file_fail("read", NULL, reader->path, reader->json.error);
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: %s", reader->path, reader->json.why);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hash(tdm_json *json, tdm_hash128 *out) {
    char text[TDM_HASH_TEXT];
    size_t length;
    uint64_t words[2] = {0, 0};
    if (!tdm__json_string(json, text, sizeof(text), &length)) return false;
    if (length != DIGITS) return tdm__json_fail(json, "a hash must have %d hex digits, has %zu", DIGITS, length);
    for (int i = 0; i < DIGITS; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0) return tdm__json_fail(json, "a hash must have lower-case hex digits, has '%s'", text);
        words[i / 16] = words[i / 16] << 4 | (uint64_t)digit;
    }
    *out = (tdm_hash128){.low = words[1], .high = words[0]};
    return true;
}

/* Reads "tensors". It must list exactly the tensors of the file. */
static tdm_status read_tensors(manifest_reader *reader, int part) {
    tdm_ckpt *ckpt = reader->ckpt;
    tdm_manifest_file *entry = &ckpt->manifest.file[part];
    const tdm_tensor_file *file = ckpt->tensors[part];
    char printable[TDM_ST_PRINTABLE];
    bool *seen;
    size_t length;
    int found = 0;
    TDM_TRY(tdm__zone_new(&ckpt->zone, &entry->tensor_hash, (size_t)file->count, sizeof(*entry->tensor_hash)));
    TDM_TRY(tdm__zone_new(&ckpt->zone, &seen, (size_t)file->count, sizeof(*seen)));
    if (!tdm__json_object(&reader->json)) return json_fault(reader);
    while (tdm__json_key(&reader->json, reader->name, sizeof(reader->name), &length)) {
        const tdm_tensor *tensor = tdm__tensor_file_find(file, reader->name);
        if (tensor == NULL)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' is in the manifest, but not in the file", file->path,
                     tdm__printable(printable, reader->name));
        ptrdiff_t index = tensor - file->tensor;
        if (seen[index])
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' is listed twice", reader->path,
                     tdm__printable(printable, reader->name));
        seen[index] = true;
        found++;
        if (!read_hash(&reader->json, &entry->tensor_hash[index])) return json_fault(reader);
    }
    if (reader->json.failed) return json_fault(reader);
    for (int i = 0; i < file->count && found < file->count; i++) {
        if (!seen[i])
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: tensor '%s' is not listed in the manifest", file->path,
                     tdm__printable(printable, file->tensor[i].name));
    }
    return TDM_OK;
}

/* Checks that the file exists with the size in the manifest. A tensor file stays open. */
static tdm_status open_part(manifest_reader *reader, int part) {
    tdm_ckpt *ckpt = reader->ckpt;
    const uint64_t expected = ckpt->manifest.file[part].bytes;
    const char *name = tdm__ckpt_file_names[part];
    tdm_ckpt_file file;
    TDM_TRY(tdm__ckpt_file_open(&file, ckpt, part));
    tdm__ckpt_file_close(&file);
    if (file.bytes != expected)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s/%s: expected %llu bytes by its manifest, found %llu", ckpt->path, name,
                 (unsigned long long)expected, (unsigned long long)file.bytes);
    if (!has_tensors(part)) return TDM_OK;
    if (file.memory == NULL) return tdm__tensor_file_open(&ckpt->tensors[part], ckpt->host, &ckpt->folder, name);
    return tdm__tensor_file_open_memory(&ckpt->tensors[part], ckpt->host, file.memory, (size_t)file.bytes, file.path);
}

/* Reads the next key, which must be `key`. */
static bool expect(manifest_reader *reader, const char *key) {
    size_t length;
    if (tdm__json_key(&reader->json, reader->name, sizeof(reader->name), &length))
        return strcmp(reader->name, key) == 0 ||
               tdm__json_fail(&reader->json, "expected key '%s', found '%.32s'", key, reader->name);
    return !reader->json.failed && tdm__json_fail(&reader->json, "key '%s' is missing", key);
}

/* Reads {"bytes": n, "xxh3": hash, "tensors": {...}}, in this order. */
static tdm_status read_file(manifest_reader *reader, int part) {
    tdm_manifest_file *entry = &reader->ckpt->manifest.file[part];
    tdm_json *json = &reader->json;
    size_t length;
    if (!tdm__json_object(json) || !expect(reader, "bytes") || !tdm__json_natural(json, &entry->bytes) ||
        !expect(reader, "xxh3") || !read_hash(json, &entry->hash))
        return json_fault(reader);
    TDM_TRY(open_part(reader, part));
    if (has_tensors(part)) {
        if (!expect(reader, "tensors")) return json_fault(reader);
        TDM_TRY(read_tensors(reader, part));
    }
    if (tdm__json_key(json, reader->name, sizeof(reader->name), &length))
        tdm__json_fail(json, "unexpected key '%.32s'", reader->name);
    if (json->failed) return json_fault(reader);
    entry->listed = true;
    return TDM_OK;
}

static tdm_status read_files(manifest_reader *reader) {
    size_t length;
    if (!tdm__json_object(&reader->json)) return json_fault(reader);
    while (tdm__json_key(&reader->json, reader->name, sizeof(reader->name), &length)) {
        char printable[TDM_ST_PRINTABLE];
        int part = 0;
        while (part < TDM_CKPT_FILES && strcmp(reader->name, tdm__ckpt_file_names[part]) != 0) part++;
        if (part == TDM_CKPT_FILES || reader->ckpt->manifest.file[part].listed)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: file '%s' %s", reader->path, tdm__printable(printable, reader->name),
                     part == TDM_CKPT_FILES ? "does not belong in a checkpoint" : "is listed twice");
        TDM_TRY(read_file(reader, part));
    }
    if (reader->json.failed) return json_fault(reader);
    for (int part = TDM_CKPT_MODEL; part <= TDM_CKPT_STATE; part++) {
        if (part != TDM_CKPT_AVERAGE && part != TDM_CKPT_COMPRESSION && !reader->ckpt->manifest.file[part].listed)
            TDM_FAIL(TDM_E_CHECKPOINT, "%s: it does not list %s", reader->path, tdm__ckpt_file_names[part]);
    }
    return TDM_OK;
}

static tdm_status read_all(manifest_reader *reader) {
    tdm_json *json = &reader->json;
    tdm_hash128 self;
    uint64_t version;
    size_t length;
    if (!tdm__json_object(json) || !expect(reader, "xxh3") || !read_hash(json, &self) || !expect(reader, "format") ||
        !tdm__json_string(json, reader->name, sizeof(reader->name), &length))
        return json_fault(reader);
    if (strcmp(reader->name, format_name) != 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected format '%s', found '%.32s'", reader->path, format_name, reader->name);
    if (!expect(reader, "version") || !tdm__json_natural(json, &version)) return json_fault(reader);
    if (version != TDM_CKPT_VERSION)
        TDM_FAIL(TDM_E_CHECKPOINT,
                 "%s: this tandem reads version %d, the checkpoint has version %llu and needs a "
                 "newer tandem",
                 reader->path, TDM_CKPT_VERSION, (unsigned long long)version);
    if (!expect(reader, "files")) return json_fault(reader);
    TDM_TRY(read_files(reader));
    if (tdm__json_key(json, reader->name, sizeof(reader->name), &length))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected nothing after 'files'", reader->path);
    if (json->failed || !tdm__json_end(json)) return json_fault(reader);
    return TDM_OK;
}

/* Checks the manifest against its own hash, before its content is used. */
static tdm_status check_itself(const tdm_ckpt_file *file) {
    char head[GUARDED_AT], digits[TDM_HASH_TEXT];
    tdm_hash128 hash;
    const char *path = file->path;
    if (file->bytes < GUARDED_AT || file->bytes > MAX_BYTES)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected %d to %d bytes, found %llu", path, (int)GUARDED_AT, (int)MAX_BYTES,
                 (unsigned long long)file->bytes);
    TDM_TRY(tdm__ckpt_file_read(file, head, sizeof(head), 0));
    if (memcmp(head, first_lines, DIGITS_AT) != 0 || memcmp(head + DIGITS_AT + DIGITS, "\",\n", 3) != 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: expected its own hash in the second line, found none", path);
    TDM_TRY(tdm__ckpt_file_hash(file, GUARDED_AT, file->bytes - GUARDED_AT, &hash));
    tdm__hash_print(digits, hash);
    if (memcmp(digits, head + DIGITS_AT, DIGITS) != 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: damaged: expected hash %.*s, found %s", path, (int)DIGITS, head + DIGITS_AT,
                 digits);
    return TDM_OK;
}

tdm_status tdm__manifest_read(tdm_ckpt *ckpt) {
    manifest_reader *reader = NULL;
    tdm_ckpt_file file;
    tdm_status status;
    if (ckpt->memory == NULL && !tdm__file_is_there(&ckpt->folder, TDM_CKPT_MANIFEST))
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: missing " TDM_CKPT_MANIFEST ": the checkpoint is incomplete; remove its folder",
                 ckpt->path);
    TDM_TRY(tdm__ckpt_file_open(&file, ckpt, TDM_CKPT_FILES));
    TDM_TRY_DONE(check_itself(&file));
    TDM_TRY_DONE(tdm__new(ckpt->host, &reader, 1, sizeof(*reader), "manifest"));
    reader->ckpt = ckpt;
    reader->path = file.path;
    if (file.memory != NULL)
        tdm__json_open(&reader->json, file.memory, (size_t)file.bytes, TDM_ST_DEPTH);
    else
        tdm__json_open_file(&reader->json, file.fd, 0, file.bytes, reader->window, TDM_ST_DEPTH);
    TDM_TRY_DONE(read_all(reader));
done:
    tdm__delete(ckpt->host, reader);
    tdm__ckpt_file_close(&file);
    return status;
}
