/* What all ranks of a job must have alike, compared before the first step. Every rank gets the lines of all, so that
 * every rank tells the same: which key differs, and what who has. */
#include <string.h>

#include "runtime/base/field.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/graph/graph.h"
#include "runtime/train/run.h"

/* Where things are, what is shown, how long one waits; a point at the end stands for a whole section. */
static const char *const may_differ[] = {"name",
                                         "run.",
                                         "log.",
                                         "data.workers",
                                         "data.resident",
                                         "data.train.images",
                                         "data.train.labels",
                                         "data.train.x",
                                         "data.train.y",
                                         "data.train.files",
                                         "data.train.path",
                                         "data.eval.images",
                                         "data.eval.labels",
                                         "data.eval.x",
                                         "data.eval.y",
                                         "data.eval.files",
                                         "data.eval.path",
                                         "parallel.device_ids",
                                         "parallel.allow_shared_device",
                                         "parallel.dp.",
                                         "parallel.ddp.backend",
                                         "parallel.ddp.init_method",
                                         "parallel.ddp.timeout",
                                         "parallel.ddp.heartbeat",
                                         "checkpoint.keep_last"};

/* A line `key: value`. */
typedef struct line {
    const char *key, *value;
    int key_length, length; /* of the value */
} line;

/* The line at *at, which moves behind it; false at the end. */
static bool next_line(const char **at, line *out) {
    const char *end = strchr(*at, '\n'), *colon = strchr(*at, ':');
    if (end == NULL || colon == NULL || colon > end) return false;
    *out = (line){.key = *at, .key_length = (int)(colon - *at), .value = colon + 1};
    while (*out->value == ' ') out->value++;
    out->length = (int)(end - out->value);
    *at = end + 1;
    return true;
}

static bool find_line(const char *text, const line *like, line *out) {
    while (next_line(&text, out)) {
        if (out->key_length == like->key_length && memcmp(out->key, like->key, (size_t)like->key_length) == 0)
            return true;
    }
    *out = (line){.value = "none", .length = 4};
    return false;
}

static bool differs(const line *a, const line *b) {
    return a->length != b->length || memcmp(a->value, b->value, (size_t)a->length) != 0;
}

/* ---- this rank's lines ---- */

static bool counts(const line *l) {
    for (size_t i = 0; i < sizeof(may_differ) / sizeof(may_differ[0]); i++) {
        size_t length = strlen(may_differ[i]);
        bool whole = may_differ[i][length - 1] == '.';
        if (strncmp(l->key, may_differ[i], length) == 0 && (whole || (size_t)l->key_length == length)) return false;
    }
    return true;
}

static void add_layers(const tdm_graph *graph, tdm_text *text) {
    char shape[64];
    tdm__shape_print(shape, sizeof(shape), &graph->values[graph->input].shape);
    tdm__text_printf(text, "model.input: %s\n", shape);
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        tdm__text_printf(text, "model.layers[%zu]: %s %s", i, node->op->name, node->name);
        for (int k = 0; k < node->input_count; k++) tdm__text_printf(text, " v%d", (int)node->input[k]);
        for (const tdm_field *row = node->op->attrs; row != NULL && row->key != NULL; row++) {
            tdm__text_printf(text, " %s=", row->key);
            tdm__field_print(row, node->attrs, text);
        }
        tdm__text_puts(text, "\n");
    }
}

static tdm_status own_lines(const tdm_run *run, tdm_text *text) {
    char *job = NULL;
    line l;
    TDM_TRY(tdm_job_print(run->job, &job));
    for (const char *at = job; next_line(&at, &l);) {
        if (counts(&l)) tdm__text_printf(text, "%.*s: %.*s\n", l.key_length, l.key, l.length, l.value);
    }
    tdm_free(job);
    tdm__text_printf(text, "data.train (samples found): %lld\n", (long long)run->train->count);
    tdm__text_printf(text, "data.eval (samples found): %lld\n", (long long)tdm_run_eval_count(run));
    add_layers(run->graph, text);
    if (text->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while comparing the ranks' configurations");
    return TDM_OK;
}

/* ---- everybody's ---- */

/* The texts of all ranks, `stride` bytes apart, each terminated. */
static tdm_status gather(const tdm_run *run, const tdm_text *own, tdm_arena *arena, char **all, size_t *stride) {
    int64_t length = (int64_t)own->length, lengths[TDM_LIST_MAX] = {0};
    char *padded = NULL;
    size_t world = (size_t)run->world;
    TDM_TRY(
        tdm__all_gather(run->comm, (tdm_span){&length, 1, TDM_DTYPE_I64}, (tdm_span){lengths, world, TDM_DTYPE_I64}));
    *stride = 1;
    for (size_t r = 0; r < world; r++) {
        if ((size_t)lengths[r] >= *stride) *stride = (size_t)lengths[r] + 1;
    }
    TDM_TRY(tdm__arena_new(arena, &padded, *stride, 1));
    TDM_TRY(tdm__arena_new(arena, all, *stride, world));
    memset(padded, 0, *stride);
    memcpy(padded, own->data, own->length);
    return tdm__all_gather(run->comm, (tdm_span){padded, *stride, TDM_DTYPE_U8},
                           (tdm_span){*all, *stride * world, TDM_DTYPE_U8});
}

/* What the first difference is, and the keys of the next few. */
typedef struct verdict {
    int count;
    line mine, theirs; /* rank 0's and the other's */
    char more[200];
} verdict;

static void note(verdict *v, const line *mine, const line *theirs) {
    const line *named = mine->key != NULL ? mine : theirs;
    size_t used = strlen(v->more);
    if (v->count++ == 0) {
        v->mine = *mine;
        v->theirs = *theirs;
        v->mine.key = named->key;
        v->mine.key_length = named->key_length;
    } else if (v->count <= 5) {
        snprintf(v->more + used, sizeof(v->more) - used, "%s%.*s", used > 0 ? ", " : "", named->key_length, named->key);
    } else if (v->count == 6) {
        snprintf(v->more + used, sizeof(v->more) - used, ", ...");
    }
}

static void compare(const char *mine, const char *theirs, verdict *v) {
    line a, b;
    *v = (verdict){.count = 0};
    for (const char *at = mine; next_line(&at, &a);) {
        if (!find_line(theirs, &a, &b) || differs(&a, &b)) note(v, &a, &b);
    }
    for (const char *at = theirs; next_line(&at, &b);) {
        if (!find_line(mine, &b, &a)) note(v, &a, &b);
    }
}

static tdm_status compare_all(const tdm_run *run, const tdm_text *own, tdm_arena *arena) {
    char *all = NULL;
    size_t stride = 0;
    TDM_TRY(gather(run, own, arena, &all, &stride));
    for (int r = 1; r < run->world; r++) {
        verdict v;
        compare(all, all + (size_t)r * stride, &v);
        if (v.count == 0) continue;
        TDM_FAIL(TDM_E_COMM,
                 "ranks differ in %.*s: rank %d has %.*s, rank 0 has %.*s%s%s; start all ranks with one configuration",
                 v.mine.key_length, v.mine.key, r, v.theirs.length, v.theirs.value, v.mine.length, v.mine.value,
                 v.more[0] != '\0' ? "; also in " : "", v.more);
    }
    return TDM_OK;
}

tdm_status tdm__run_agree(tdm_run *run) {
    if (run->comm == NULL) return TDM_OK;
    tdm_arena arena;
    tdm_text own;
    tdm__arena_init(&arena, run->host);
    tdm__text_init(&own, run->host);
    tdm_status status = own_lines(run, &own);
    if (status == TDM_OK) status = compare_all(run, &own, &arena);
    tdm__text_deinit(&own);
    tdm__arena_deinit(&arena);
    TDM_TRY(status);
    /* Kernels and placement follow from the machine, too. */
    return tdm__comm_agree(run->comm, "the plan (kernels of this machine and build)", run->plan->hash.high,
                           run->plan->hash.low);
}
