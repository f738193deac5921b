/* What must be the same on all ranks, compared before the first step. Every rank gets the lines of all ranks, so all
 * report the same: which key differs, and which rank has which value. */
#include <string.h>

#include "runtime/base/system/build_id.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/data/read/row_file.h"
#include "runtime/train/lines.h"
#include "runtime/train/run.h"

/* ---- samples on the disk: who has the same files shares the work of hashing them ---- */

static tdm_status gather_one(const tdm_run *run, uint64_t own, uint64_t all[TDM_REPLICAS_MAX]) {
    return tdm_comm_all_gather(run->comm, (tdm_span){&own, 1, TDM_DTYPE_I64},
                               (tdm_span){all, (size_t)run->world, TDM_DTYPE_I64});
}

/* *sum: of the blocks of these files. All ranks call it, also those that have no dataset. */
static tdm_status hash_files(const tdm_run *run, const tdm_dataset *dataset, uint64_t *sum) {
    const uint64_t own = dataset != NULL ? tdm__row_files_hash(dataset) : 0;
    uint64_t files[TDM_REPLICAS_MAX], sums[TDM_REPLICAS_MAX], share = 0;
    int part = 0, parts = 0;
    TDM_TRY(gather_one(run, own, files));
    for (int r = 0; r < run->world; r++) {
        if (r == run->rank) part = parts;
        parts += files[r] == own;
    }
    if (own != 0) TDM_TRY(tdm__row_files_add(dataset, part, parts, &share));
    TDM_TRY(gather_one(run, share, sums));
    *sum = 0;
    for (int r = 0; r < run->world; r++) *sum += files[r] == own ? sums[r] : 0;
    return TDM_OK;
}

/* ---- this rank's lines ---- */

static tdm_status add_data(const char *key, const tdm_dataset *dataset, bool is_source, uint64_t of_files,
                           tdm_text *text) {
    char hash[TDM_HASH_TEXT], content[TDM_HASH_TEXT], found[TDM_DATA_FOUND];
    const bool is_read_later = dataset != NULL && dataset->ops->picture != NULL;
    if (dataset == NULL) return TDM_OK;
    tdm__data_print(dataset, found);
    tdm__text_printf(text, "%s (samples found): %s\n", key, found);
    if (dataset->identity[0] != '\0') tdm__text_printf(text, "%s (their identity): %s\n", key, dataset->identity);
    if (is_source) return TDM_OK;
    TDM_TRY(tdm__dataset_hash_content(dataset, of_files, content));
    if (content[0] != '\0')
        tdm__text_printf(text, "%s (%s): %s\n", key,
                         is_read_later ? "names, labels and sizes of its files" : "all samples' bytes", content);
    if (content[0] != '\0' && !is_read_later) return TDM_OK;
    TDM_TRY(tdm__dataset_hash(dataset, hash));
    tdm__text_printf(text, "%s (some samples' bytes): %s\n", key, hash);
    return TDM_OK;
}

static tdm_status own_lines(const tdm_run *run, tdm_text *text) {
    char build[TDM_BUILD_ID_TEXT];
    uint64_t train, eval; /* of files */
    TDM_TRY(tdm__lines_of(run->job, run->graph, TDM_FIELD_LOCAL, text));
    tdm__text_printf(text, "the build: tandem %s, %s\n", TDM_VERSION, tdm__build_id(build));
    tdm__own_lines(run, text);
    tdm__text_printf(text, "kernels: %s, %s\n", run->compute.device->name,
                     run->compute.report.usable ? run->compute.report.text : "reference");
    TDM_TRY(hash_files(run, run->train, &train));
    TDM_TRY(hash_files(run, run->eval, &eval));
    TDM_TRY(add_data("data.train", run->train, run->options.train != NULL, train, text));
    TDM_TRY(add_data("data.eval", run->eval, run->options.eval != NULL, eval, text));
    if (text->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while comparing the ranks' configurations");
    return TDM_OK;
}

/* ---- everybody's ---- */

/* The texts of all ranks, `stride` bytes apart, each terminated. */
static tdm_status gather(const tdm_run *run, const tdm_text *own, tdm_zone *zone, char **all, size_t *stride) {
    int64_t length = (int64_t)own->length, lengths[TDM_REPLICAS_MAX] = {0};
    char *padded = NULL;
    size_t world = (size_t)run->world;
    TDM_TRY(tdm_comm_all_gather(run->comm, (tdm_span){&length, 1, TDM_DTYPE_I64},
                                (tdm_span){lengths, world, TDM_DTYPE_I64}));
    *stride = 1;
    for (size_t r = 0; r < world; r++) {
        if ((size_t)lengths[r] >= *stride) *stride = (size_t)lengths[r] + 1;
    }
    TDM_TRY(tdm__zone_new(zone, &padded, *stride, 1));
    TDM_TRY(tdm__zone_new(zone, all, *stride, world));
    memset(padded, 0, *stride);
    memcpy(padded, own->data, own->length);
    return tdm_comm_all_gather(run->comm, (tdm_span){padded, *stride, TDM_DTYPE_U8},
                               (tdm_span){*all, *stride * world, TDM_DTYPE_U8});
}

/* What the first difference is, and the keys of the next few. */
typedef struct verdict {
    int count;
    tdm_line mine, theirs; /* rank 0's and the other's */
    char more[200];
} verdict;

static void note(void *user, const tdm_line *mine, const tdm_line *theirs) {
    verdict *v = user;
    size_t used = strlen(v->more);
    if (v->count++ == 0) {
        v->mine = *mine;
        v->theirs = *theirs;
    } else if (v->count <= 5) {
        snprintf(v->more + used, sizeof(v->more) - used, "%s%.*s", used > 0 ? ", " : "", mine->key_length, mine->key);
    } else if (v->count == 6) {
        snprintf(v->more + used, sizeof(v->more) - used, ", ...");
    }
}

static tdm_status compare_all(const tdm_run *run, const tdm_text *own, tdm_zone *zone) {
    char *all = NULL;
    size_t stride = 0;
    TDM_TRY(gather(run, own, zone, &all, &stride));
    for (int r = 1; r < run->world; r++) {
        verdict v = {.count = 0};
        tdm__lines_compare(all, all + (size_t)r * stride, note, &v);
        if (v.count == 0) continue;
        TDM_FAIL(
            TDM_E_COMM,
            "ranks differ in %.*s: rank %d has %.*s, rank 0 has %.*s%s%s; start all ranks with one configuration, one "
            "build and the same data",
            v.mine.key_length, v.mine.key, r, v.theirs.length, v.theirs.value, v.mine.length, v.mine.value,
            v.more[0] != '\0' ? "; also in " : "", v.more);
    }
    return TDM_OK;
}

tdm_status tdm__run_agree(tdm_run *run) {
    if (run->comm == NULL) return TDM_OK;
    tdm_zone zone;
    tdm_text own;
    tdm__zone_init(&zone, run->host);
    tdm__text_init(&own, run->host);
    tdm_status status = own_lines(run, &own);
    if (status == TDM_OK) status = compare_all(run, &own, &zone);
    tdm__text_deinit(&own);
    tdm__zone_deinit(&zone);
    TDM_TRY(status);
    /* The plan also depends on the machine: its kernels, and with them the offsets. */
    return tdm__comm_agree(run->comm, "the plan (kernels of this machine and build)", run->plan->hash.high,
                           run->plan->hash.low);
}
