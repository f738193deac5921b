/* Rows in a file, see row_file.h. */
#include "runtime/data/read/row_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/system/process.h"

/* That are read at a time: to be converted, to be hashed. */
enum { PIECE_BYTES = 16 * 1024, BLOCK_BYTES = 1 << 20 };
#define SEEDS ((uint64_t)1 << 56) /* from one file's first seed to the next one's */

static tdm_status look(int fd, const char *path, tdm_row_file_state *out) {
    struct stat about;
    if (fstat(fd, &about) != 0) return tdm__file_fail("stat", NULL, path, errno);
    *out = (tdm_row_file_state){.device = about.st_dev,
                                .inode = about.st_ino,
                                .bytes = (uint64_t)about.st_size,
                                .seconds = (uint64_t)about.st_mtim.tv_sec,
                                .nanoseconds = (uint64_t)about.st_mtim.tv_nsec};
    return TDM_OK;
}

tdm_status tdm__row_file_open(const tdm_row_file **out, tdm_dataset *dataset, tdm_reader *reader,
                              const tdm_cell_type *type, size_t row_bytes) {
    tdm_row_file_state now;
    tdm_row_file *file;
    TDM_TRY(look(reader->fd, reader->path, &now));
    TDM_TRY(tdm__dataset_take(dataset, &file, 1, sizeof(*file), reader->what));
    *file = (tdm_row_file){.next = dataset->row_files,
                           .what = reader->what,
                           .path = reader->path,
                           .fd = reader->fd,
                           .type = *type,
                           .first = reader->given,
                           .row_bytes = row_bytes,
                           .opened = now};
    reader->fd = -1;
    dataset->row_files = file;
    *out = file;
    return TDM_OK;
}

void tdm__row_files_close(tdm_dataset *dataset) {
    for (const tdm_row_file *file = dataset->row_files; file != NULL; file = file->next) close(file->fd);
}

/* ---- reading ---- */

/* Reads `bytes` bytes from `offset` behind the start of row 0 on. The system notes the time of a write before its bytes
 * can be read, so bytes are those of the open if the time still is. */
static tdm_status read_at(const tdm_row_file *file, size_t offset, size_t bytes, void *out) {
    tdm_row_file_state now;
    const tdm_status status = tdm__file_read(file->fd, file->path, out, bytes, file->first + offset, TDM_E_DATA);
    if (status != TDM_OK && status != TDM_E_DATA) return status;
    TDM_TRY(look(file->fd, file->path, &now));
    if (status == TDM_OK && memcmp(&now, &file->opened, sizeof(now)) == 0) return TDM_OK;
    TDM_FAIL_READ(file,
                  "sample %zu cannot be read: the file had %llu bytes when it was opened and has %llu now%s; do not "
                  "change a file that a job reads",
                  offset / file->row_bytes, (unsigned long long)file->opened.bytes, (unsigned long long)now.bytes,
                  now.bytes == file->opened.bytes ? ", and has been written to" : "");
}

tdm_status tdm__row_file_read(const tdm_row_file *file, int64_t row, bool as_floats, void *out) {
    const tdm_cell_type *type = &file->type;
    const bool is_float = type->kind == 'f' && type->bytes == sizeof(float) && type->order == '<';
    const size_t start = (size_t)row * file->row_bytes;
    unsigned char piece[PIECE_BYTES];
    if (is_float || !as_floats) return read_at(file, start, file->row_bytes, out);
    for (size_t done = 0, count; done < file->row_bytes; done += count) {
        count = tdm__smaller(PIECE_BYTES, file->row_bytes - done);
        TDM_TRY(read_at(file, start + done, count, piece));
        tdm__cells_to_floats(type, piece, count / type->bytes, (float *)out + done / type->bytes);
    }
    return TDM_OK;
}

/* ---- comparing ---- */

uint64_t tdm__row_files_hash(const tdm_dataset *dataset) {
    char machine[TDM_MACHINE_TEXT];
    const int64_t range[] = {dataset->first, dataset->range_count};
    if (dataset->row_files == NULL) return 0;
    tdm__machine_print(machine);
    uint64_t hash = tdm__hash64(machine, strlen(machine), tdm__hash64(range, sizeof(range), 0));
    for (const tdm_row_file *file = dataset->row_files; file != NULL; file = file->next)
        hash = tdm__hash64(&file->opened, sizeof(file->opened), hash);
    return hash;
}

/* Blocks are of bytes. Their hashes are added, so that it does not matter who has made which. */
static tdm_status add_blocks(const tdm_row_file *file, uint64_t seed, size_t at, size_t bytes, int part, int parts,
                             void *buffer, uint64_t *sum) {
    for (size_t done = (size_t)part * BLOCK_BYTES; done < bytes; done += (size_t)parts * BLOCK_BYTES) {
        const size_t count = tdm__smaller(BLOCK_BYTES, bytes - done);
        TDM_TRY(read_at(file, at + done, count, buffer));
        *sum += tdm__hash64(buffer, count, seed + done);
    }
    return TDM_OK;
}

tdm_status tdm__row_files_add(const tdm_dataset *dataset, int part, int parts, uint64_t *sum) {
    const size_t first = (size_t)dataset->first, rows = (size_t)dataset->range_count;
    void *buffer;
    uint64_t seed = 0;
    tdm_status status = TDM_OK;
    TDM_TRY(tdm__new(dataset->host, &buffer, BLOCK_BYTES, 1, "comparing data"));
    for (const tdm_row_file *file = dataset->row_files; file != NULL && status == TDM_OK; file = file->next) {
        status = add_blocks(file, seed, first * file->row_bytes, rows * file->row_bytes, part, parts, buffer, sum);
        seed += SEEDS;
    }
    tdm__delete(dataset->host, buffer);
    return status;
}
