#include "runtime/train/lines.h"

#include <string.h>

#include "runtime/base/field/field.h"
#include "runtime/base/status.h"

bool tdm__next_line(const char **at, tdm_line *out) {
    const char *end = strchr(*at, '\n'), *colon = strchr(*at, ':');
    if (end == NULL || colon == NULL || colon > end) return false;
    *out = (tdm_line){.key = *at, .key_length = (int)(colon - *at), .value = colon + 1};
    while (*out->value == ' ') out->value++;
    out->length = (int)(end - out->value);
    *at = end + 1;
    return true;
}

static void add_layers(const tdm_graph *graph, tdm_text *text) {
    tdm__text_puts(text, graph->inputs[0].name != NULL ? "model.inputs: " : "model.input: ");
    tdm__graph_print_inputs(graph, text);
    tdm__text_puts(text, "\n");
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        tdm__text_printf(text, "model.layers[%zu]: %s %s", i, node->op->name, node->name);
        for (int k = 0; k < node->input_count; k++) tdm__text_printf(text, " v%d", (int)node->input[k]);
        tdm__fields_print(node->op->attrs, node->attrs, text);
        tdm__text_puts(text, "\n");
    }
}

static void add_frozen(const tdm_texts *freeze, tdm_text *text) {
    tdm__text_puts(text, "model.freeze: [");
    for (int i = 0; i < freeze->count; i++) tdm__text_printf(text, "%s%s", i > 0 ? ", " : "", freeze->item[i]);
    tdm__text_puts(text, "]\n");
}

tdm_status tdm__lines_of(const tdm_job *job, const tdm_graph *graph, unsigned without, tdm_text *text) {
    tdm_text all;
    tdm_line l;
    tdm__text_init(&all, text->host);
    TDM_TRY_ELSE(tdm__job_print(job, &all), tdm__text_deinit(&all));
    for (const char *at = all.data; tdm__next_line(&at, &l);) {
        if ((tdm_job_key_flags(l.key, (size_t)l.key_length) & without) == 0)
            tdm__text_printf(text, "%.*s: %.*s\n", l.key_length, l.key, l.length, l.value);
    }
    tdm__text_deinit(&all);
    add_layers(graph, text);
    add_frozen(&job->freeze, text);
    return TDM_OK;
}

/* ---- comparing ---- */

static bool find_line(const char *text, const tdm_line *like, tdm_line *out) {
    while (tdm__next_line(&text, out)) {
        if (out->key_length == like->key_length && memcmp(out->key, like->key, (size_t)like->key_length) == 0)
            return true;
    }
    *out = (tdm_line){.key = like->key, .key_length = like->key_length, .value = "none", .length = 4};
    return false;
}

static bool differs(const tdm_line *a, const tdm_line *b) {
    return a->length != b->length || memcmp(a->value, b->value, (size_t)a->length) != 0;
}

void tdm__lines_compare(const char *mine, const char *theirs,
                        void (*report)(void *user, const tdm_line *mine, const tdm_line *theirs), void *user) {
    tdm_line a, b;
    if (strcmp(mine, theirs) == 0) return; /* the usual case: ranks agree */
    for (const char *at = mine; tdm__next_line(&at, &a);) {
        (void)find_line(theirs, &a, &b);
        if (differs(&a, &b)) report(user, &a, &b);
    }
    for (const char *at = theirs; tdm__next_line(&at, &b);) {
        if (!find_line(mine, &b, &a)) report(user, &a, &b);
    }
}
