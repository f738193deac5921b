/* Random samples, the same numbers as those of
 *     g = torch.Generator().manual_seed(seed)
 *     x = torch.randn(samples, *input, generator=g)
 *     y = torch.randint(0, classes, (samples,), generator=g)  or  torch.randn(samples, width, generator=g)
 *
 * Numbers by which a layer looks something up are whole ones that it knows, made of those.
 *
 * Small tensors are drawn at open. For large ones only the generator's state is kept, once every MARK_WORDS words, and
 * a sample is drawn when it is read. So opening takes little time and memory, and any sample can be read quickly. */
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/data/formats.h"

enum { MT_WORDS = 624, BLOCK = 16, MARK_WORDS = 16 * MT_WORDS, AT_OPEN = 1 << 22 };
#define NUMBERS_MAX ((size_t)1 << 34)  /* skipping this many takes seconds */
#define RESIDENT_MAX ((size_t)1 << 32) /* so does drawing this many bytes */

/* The numbers of one torch.randn, as rows of `width`. */
typedef struct normal_rows {
    size_t count, width;
    float *all;        /* small tensors: all numbers; NULL for large ones, which use the next two */
    tdm_rng *mark;     /* mark[i]: the generator before word i * MARK_WORDS */
    float tail[BLOCK]; /* the last 16 numbers: if count is not a multiple of 16, torch draws them again at the end */
} normal_rows;

typedef struct synthetic_dataset {
    tdm_dataset base;
    normal_rows x, values;
    int64_t *labels;
    tdm_data_index *index; /* the largest `below` first */
    int index_count;
} synthetic_dataset;

/* Skips `count` words. */
static void skip_words(tdm_rng *rng, size_t count) {
    while (count > 0) {
        if (rng->next == MT_WORDS) {
            tdm__rng_u32(rng);
            count--;
        }
        size_t left = (size_t)(MT_WORDS - rng->next), now = count < left ? count : left;
        rng->next += (int)now;
        count -= now;
    }
}

static tdm_status draw_later(tdm_dataset *dataset, normal_rows *rows, tdm_rng *rng) {
    size_t marks = rows->count / MARK_WORDS + 1;
    TDM_TRY(tdm__dataset_take(dataset, &rows->mark, marks, sizeof(tdm_rng), "synthetic samples"));
    for (size_t i = 0; i < marks; i++) {
        size_t left = rows->count - i * MARK_WORDS;
        rows->mark[i] = *rng;
        skip_words(rng, left < MARK_WORDS ? left : MARK_WORDS);
    }
    if (rows->count % BLOCK != 0) tdm__rng_normal(rng, rows->tail, BLOCK, 0.0, 1.0);
    return TDM_OK;
}

static tdm_status draw_rows(tdm_dataset *dataset, normal_rows *rows, tdm_rng *rng) {
    if (rows->count > AT_OPEN) return draw_later(dataset, rows, rng);
    TDM_TRY(tdm__dataset_take(dataset, &rows->all, rows->count, sizeof(float), "synthetic samples"));
    tdm__rng_normal(rng, rows->all, rows->count, 0.0, 1.0);
    return TDM_OK;
}

/* Draws the numbers [first, end). torch.randn makes them in blocks of 16, so whole blocks are drawn. */
static void draw_blocks(const normal_rows *rows, size_t first, size_t end, float *out) {
    size_t at = first / BLOCK * BLOCK;
    if (first >= end) return;
    tdm_rng rng = rows->mark[at / MARK_WORDS];
    skip_words(&rng, at % MARK_WORDS);
    while (at < end) {
        if (at >= first && end - at >= BLOCK) {
            size_t whole = (end - at) / BLOCK * BLOCK;
            tdm__rng_normal(&rng, out + (at - first), whole, 0.0, 1.0);
            at += whole;
            continue;
        }
        float block[BLOCK];
        tdm__rng_normal(&rng, block, BLOCK, 0.0, 1.0);
        for (size_t i = 0; i < BLOCK; i++, at++) {
            if (at >= first && at < end) out[at - first] = block[i];
        }
    }
}

static void read_row(const normal_rows *rows, int64_t index, float *out) {
    size_t first = (size_t)index * rows->width, end = first + rows->width;
    if (rows->all != NULL) {
        memcpy(out, rows->all + first, rows->width * sizeof(*out));
        return;
    }
    size_t tail = rows->count % BLOCK == 0 ? rows->count : rows->count - BLOCK;
    draw_blocks(rows, first, end < tail ? end : tail, out);
    for (size_t i = first < tail ? tail : first; i < end; i++) out[i - first] = rows->tail[i - tail];
}

/* Of a number that two layers read the smaller `below` is last, and counts. */
static void make_indices(const synthetic_dataset *own, float *x) {
    for (int i = 0; i < own->index_count; i++) {
        const tdm_data_index *index = &own->index[i];
        for (float *at = x + index->first; at < x + index->first + index->count; at++)
            *at = (float)(tdm__hash64(at, sizeof(*at), 0) % (uint64_t)index->below);
    }
}

static tdm_status synthetic_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    const synthetic_dataset *own = (const synthetic_dataset *)dataset;
    index = tdm__dataset_row(dataset, index);
    if (x != NULL) {
        read_row(&own->x, index, x);
        make_indices(own, x);
    }
    if (dataset->target_kind == TDM_TARGET_CLASS) {
        memcpy(target, &own->labels[index], sizeof(own->labels[index]));
    } else {
        read_row(&own->values, index, target);
    }
    return TDM_OK;
}

static tdm_status set_size(normal_rows *rows, const tdm_data_spec *spec, size_t width) {
    rows->width = width;
    if (!tdm__mul_fits((size_t)spec->samples, width, &rows->count) || rows->count > NUMBERS_MAX)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "synthetic: at most %zu samples of %zu floats can be drawn, got %lld",
                    NUMBERS_MAX / width, width, (long long)spec->samples);
    return TDM_OK;
}

static tdm_status draw_labels(synthetic_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                              tdm_rng *rng) {
    int64_t classes = spec->classes == TDM_INT_NULL ? wanted->classes : spec->classes;
    if (classes < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "synthetic: classes must be at least 1, got %lld", (long long)classes);
    TDM_TRY(tdm__dataset_take_classes(&own->base, spec, wanted, classes, "synthetic"));
    TDM_TRY(
        tdm__dataset_take(&own->base, &own->labels, (size_t)spec->samples, sizeof(*own->labels), "synthetic labels"));
    tdm__rng_randint(rng, own->labels, (size_t)spec->samples, 0, classes);
    return TDM_OK;
}

static tdm_status draw_values(synthetic_dataset *own, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                              tdm_rng *rng) {
    if (wanted->target_width < 1)
        TDM_FAIL(TDM_E_USAGE, "synthetic: target width must be at least 1, got %lld", (long long)wanted->target_width);
    TDM_TRY(set_size(&own->values, spec, (size_t)wanted->target_width));
    TDM_TRY(draw_rows(&own->base, &own->values, rng));
    own->base.target_kind = TDM_TARGET_VALUES;
    own->base.target_width = wanted->target_width;
    return TDM_OK;
}

static tdm_status take_indices(synthetic_dataset *own, const tdm_data_wanted *wanted) {
    const int64_t width = (int64_t)own->x.width;
    TDM_TRY(tdm__dataset_take(&own->base, &own->index, (size_t)wanted->index_count, sizeof(*own->index),
                              "synthetic samples"));
    for (int i = 0; i < wanted->index_count; i++) {
        const tdm_data_index *index = &wanted->index[i];
        int to = own->index_count;
        if (index->first + index->count > width) continue;
        for (; to > 0 && own->index[to - 1].below < index->below; to--) own->index[to] = own->index[to - 1];
        own->index[to] = *index;
        own->index_count++;
    }
    return TDM_OK;
}

static tdm_status synthetic_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    synthetic_dataset *own = (synthetic_dataset *)dataset;
    size_t elements;
    tdm_rng rng;
    if (!tdm__shape_elements(&wanted->input, &elements))
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "synthetic: has no shape of its own and needs the model's (model.input)");
    if (spec->samples < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "synthetic: samples must be at least 1, got %lld",
                    (long long)spec->samples);
    TDM_TRY(set_size(&own->x, spec, elements));
    dataset->count = spec->samples;
    dataset->x_shape = wanted->input;
    tdm__rng_seed(&rng, tdm__data_seed(spec, wanted), wanted->rng_profile);
    TDM_TRY(take_indices(own, wanted));
    TDM_TRY(draw_rows(dataset, &own->x, &rng));
    if (wanted->target_kind == TDM_TARGET_CLASS) {
        TDM_TRY(draw_labels(own, spec, wanted, &rng));
    } else {
        TDM_TRY(draw_values(own, spec, wanted, &rng));
    }
    TDM_TRY(tdm__dataset_take_part(dataset, spec, wanted, "synthetic"));
    tdm__dataset_set_resident(dataset, RESIDENT_MAX);
    return TDM_OK;
}

const tdm_dataset_ops tdm__synthetic_data = {.name = "synthetic",
                                             .bytes = sizeof(synthetic_dataset),
                                             .is_made = true,
                                             .open = synthetic_open,
                                             .read = synthetic_read};
