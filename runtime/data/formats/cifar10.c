/* The binary version of CIFAR-10: several files without headers. Each file is a sequence of records, and a record is
 * one label byte and 3 x 32 x 32 pixel bytes. */
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/data/read/reader.h"
#include "runtime/data/read/table.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, CLASSES = 10 };

/* Sums up the sizes of all files and checks each, before anything is allocated. */
static tdm_status measure(const tdm_host *host, const tdm_data_spec *spec, size_t *total) {
    *total = 0;
    if (spec->files.count < 1) TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "cifar10: no file is named in `files`");
    for (int i = 0; i < spec->files.count; i++) {
        tdm_reader reader;
        TDM_TRY(tdm__reader_open(&reader, host, "cifar10", spec->files.item[i], false));
        size_t bytes = reader.file_bytes;
        tdm__reader_close(&reader);
        if (bytes == 0 || bytes % RECORD != 0)
            TDM_FAIL(TDM_E_DATA,
                     "cifar10 '%s': expected whole records of %d bytes (a label, 3 x 32 x 32 pixels), %zu for %zu of "
                     "them, found %zu bytes",
                     spec->files.item[i], RECORD, (bytes / RECORD + 1) * RECORD, bytes / RECORD + 1, bytes);
        if (!tdm__add_fits(*total, bytes, total) || *total > TDM_DATA_MAX_BYTES)
            TDM_FAIL(TDM_E_DATA,
                     "cifar10 '%s': together with the files before it, it exceeds the limit of %zu bytes; use fewer "
                     "files",
                     spec->files.item[i], TDM_DATA_MAX_BYTES);
    }
    return TDM_OK;
}

/* Appends the records of one file at *at. */
static tdm_status read_records(const tdm_host *host, const char *path, unsigned char *bytes, size_t room, size_t *at) {
    tdm_status status = TDM_OK;
    tdm_reader reader;
    TDM_TRY(tdm__reader_open(&reader, host, "cifar10", path, false));
    size_t end;
    if (!tdm__add_fits(*at, reader.file_bytes, &end) || end > room)
        TDM_FAIL_DONE(TDM_E_DATA, "cifar10 '%s': grew to %zu bytes while it was read", path, reader.file_bytes);
    TDM_TRY_DONE(tdm__reader_take(&reader, bytes + *at, reader.file_bytes));
    for (size_t record = 0; record < reader.file_bytes / RECORD; record++) {
        unsigned label = bytes[*at + record * RECORD];
        if (label >= CLASSES)
            TDM_FAIL_DONE(TDM_E_DATA, "cifar10 '%s': label of record %zu must be 0 to %d, found %u", path, record,
                          CLASSES - 1, label);
    }
    *at = end;
done:
    tdm__reader_close(&reader);
    return status;
}

static tdm_status read_files(tdm_table *table, const tdm_data_spec *spec) {
    const tdm_host *host = table->base.host;
    unsigned char *bytes;
    size_t total, at = 0;
    TDM_TRY(measure(host, spec, &total));
    TDM_TRY(tdm__dataset_take(&table->base, &bytes, total, 1, "cifar10"));
    for (int i = 0; i < spec->files.count; i++) TDM_TRY(read_records(host, spec->files.item[i], bytes, total, &at));
    if (at != total)
        TDM_FAIL(TDM_E_DATA, "cifar10: expected %zu bytes in %d files, found %zu; a file shrank while it was read",
                 total, spec->files.count, at);
    table->x = (tdm_column){.first = bytes + 1, .stride = RECORD, .width = PIXELS, .cell = TDM_CELL_U8};
    table->base.count = (int64_t)(total / RECORD);
    TDM_TRY(tdm__dataset_take(&table->base, &table->labels, total / RECORD, sizeof(*table->labels), "labels"));
    for (int64_t i = 0; i < table->base.count; i++) table->labels[i] = bytes[(size_t)i * RECORD];
    return TDM_OK;
}

static tdm_status cifar10_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    static const tdm_shape shape = {3, {3, 32, 32}};
    tdm_table *table = (tdm_table *)dataset;
    TDM_TRY(tdm__dataset_take_shape(dataset, spec, wanted, &shape, "cifar10"));
    TDM_TRY(tdm__error_at(read_files(table, spec), &spec->inputs_at));
    return tdm__table_finish(table, spec, wanted, "cifar10");
}

const tdm_dataset_ops tdm__cifar10_data = {.name = "cifar10",
                                           .bytes = sizeof(tdm_table),
                                           .only_labels = true,
                                           .open = cifar10_open,
                                           .read = tdm__table_read,
                                           .add_content = tdm__table_add_content};
