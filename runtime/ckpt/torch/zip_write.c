/* Writing an archive: entries are stored, and their data begins at a multiple of 64, as torch.save has it. A number
 * that a record has no room for is all ones there, and stands in a field of zip64 with 64 bits. */
#include <stdio.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/ckpt/torch/zip_write.h"

enum {
    ALIGN = 64,
    LOCAL = 30,
    FIELD = 4,
    ALL16 = 0xffff
}; /* bytes; LOCAL: a local header; FIELD: the head of an extra field */
static const uint64_t ALL32 = UINT32_MAX;
static const int ZIP64 = 45; /* the version that reads such fields */

void tdm__zip_put_byte(tdm_text *to, int byte) {
    const char one = (char)byte;
    tdm__text_add(to, &one, 1);
}

/* Beyond eight bytes zeros. */
void tdm__zip_put(tdm_text *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) tdm__zip_put_byte(to, i < 8 ? (int)(value >> (8 * i) & 0xff) : 0);
}

typedef struct entry {
    char name[64];
    int length; /* of the name */
    uint64_t at, bytes;
    uint32_t crc;
    bool wide, far; /* bytes, at: need 64 bits */
} entry;

/* What the local header and the directory say alike. */
static void put_common(tdm_text *to, const entry *e, bool wide, size_t extra) {
    tdm__zip_put(to, wide ? (uint64_t)ZIP64 : 0, 2); /* version needed */
    tdm__zip_put(to, 0, 2);                          /* flags */
    tdm__zip_put(to, 0, 2);                          /* stored */
    tdm__zip_put(to, 0, 2);                          /* time */
    tdm__zip_put(to, 0x21, 2);                       /* 1980-01-01 */
    tdm__zip_put(to, e->crc, 4);
    tdm__zip_put(to, e->wide ? ALL32 : e->bytes, 4);
    tdm__zip_put(to, e->wide ? ALL32 : e->bytes, 4);
    tdm__zip_put(to, (uint64_t)e->length, 2);
    tdm__zip_put(to, extra, 2);
}

/* The field of zip64, of `bytes` with its head: the numbers that the record lacks. */
static void put_wide(tdm_text *to, const entry *e, bool with_offset, size_t bytes) {
    if (bytes == 0) return;
    tdm__zip_put(to, 1, 2);
    tdm__zip_put(to, bytes - FIELD, 2);
    if (e->wide) tdm__zip_put(to, e->bytes, 8);
    if (e->wide) tdm__zip_put(to, e->bytes, 8);
    if (with_offset) tdm__zip_put(to, e->at, 8);
}

static tdm_status write_local(tdm_zip_out *a, const entry *e) {
    static const char zeros[ALIGN];
    const size_t wide = e->wide ? FIELD + 16 : 0;
    const uint64_t plain = e->at + LOCAL + (size_t)e->length + wide + FIELD;
    const size_t pad = (size_t)(tdm__round_up(plain, ALIGN) - plain);
    tdm_text head;
    tdm__text_init(&head, a->host);
    tdm__text_puts(&head, "PK\3\4");
    put_common(&head, e, e->wide, wide + FIELD + pad);
    tdm__text_puts(&head, e->name);
    put_wide(&head, e, false, wide);
    tdm__text_puts(&head, "FB"); /* the kind of padding that PyTorch names */
    tdm__zip_put(&head, pad, 2);
    tdm__text_add(&head, zeros, pad);
    const tdm_status status = head.failed
                                  ? tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for an archive")
                                  : tdm__out_write(&a->file, head.data, head.length);
    tdm__text_deinit(&head);
    return status;
}

static void list_entry(tdm_zip_out *a, const entry *e) {
    const size_t wide = e->wide || e->far ? FIELD + (e->wide ? 16 : 0) + (e->far ? 8 : 0) : 0;
    tdm__text_puts(&a->directory, "PK\1\2");
    tdm__zip_put(&a->directory, 0, 2); /* made by */
    put_common(&a->directory, e, wide > 0, wide);
    tdm__zip_put(&a->directory, 0, 10); /* comment, disk, attributes: none */
    tdm__zip_put(&a->directory, e->far ? ALL32 : e->at, 4);
    tdm__text_puts(&a->directory, e->name);
    put_wide(&a->directory, e, e->far, wide);
    a->entries++;
}

tdm_status tdm__zip_add(tdm_zip_out *a, const char *name, const void *data, size_t bytes) {
    entry e = {.at = (uint64_t)a->file.at, .bytes = bytes, .crc = tdm__zip_crc(0, data, bytes)};
    e.length = snprintf(e.name, sizeof(e.name), "archive/%s", name);
    e.wide = e.bytes >= a->wide_from;
    e.far = e.at >= a->wide_from;
    TDM_TRY(write_local(a, &e));
    list_entry(a, &e);
    return tdm__out_write(&a->file, data, bytes);
}

/* The end with 64 bits, and where it is. */
static void put_end64(tdm_zip_out *a, uint64_t at, uint64_t bytes) {
    tdm_text *to = &a->directory;
    tdm__text_puts(to, "PK\6\6");
    tdm__zip_put(to, 44, 8); /* bytes that follow */
    tdm__zip_put(to, (uint64_t)ZIP64, 2);
    tdm__zip_put(to, (uint64_t)ZIP64, 2);
    tdm__zip_put(to, 0, 8); /* disks */
    tdm__zip_put(to, a->entries, 8);
    tdm__zip_put(to, a->entries, 8);
    tdm__zip_put(to, bytes, 8);
    tdm__zip_put(to, at, 8);
    tdm__text_puts(to, "PK\6\7");
    tdm__zip_put(to, 0, 4); /* disk */
    tdm__zip_put(to, at + bytes, 8);
    tdm__zip_put(to, 1, 4); /* disks */
}

tdm_status tdm__zip_end(tdm_zip_out *a) {
    const uint64_t at = (uint64_t)a->file.at, bytes = a->directory.length;
    const bool many = a->entries >= ALL16, large = bytes >= a->wide_from, far = at >= a->wide_from;
    if (many || large || far) put_end64(a, at, bytes);
    tdm__text_puts(&a->directory, "PK\5\6");
    tdm__zip_put(&a->directory, 0, 4); /* disks */
    tdm__zip_put(&a->directory, many ? ALL16 : a->entries, 2);
    tdm__zip_put(&a->directory, many ? ALL16 : a->entries, 2);
    tdm__zip_put(&a->directory, large ? ALL32 : bytes, 4);
    tdm__zip_put(&a->directory, far ? ALL32 : at, 4);
    tdm__zip_put(&a->directory, 0, 2); /* comment */
    if (a->directory.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the directory of the archive");
    TDM_TRY(tdm__out_write(&a->file, a->directory.data, a->directory.length));
    return tdm__out_finish(&a->file);
}
