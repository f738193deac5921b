/* Patterns that name parameters, as users write them: which match nothing, and what may have been meant. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/text/pattern.h"
#include "runtime/base/text/text.h"
#include "runtime/graph/graph.h"

int tdm__graph_unmatched(const tdm_graph *graph, const tdm_texts *patterns) {
    for (int p = 0; p < patterns->count; p++) {
        size_t i = 0;
        while (i < graph->param_count && !tdm__pattern_matches(patterns->item[p], graph->params[i].name)) i++;
        if (i == graph->param_count) return p;
    }
    return -1;
}

/* The part of a pattern between its wildcards and dots at both ends, and the closest part of a name so far. */
typedef struct search {
    char core[64], best[64];
    int distance;
} search;

/* Tries whole components of the name, "conv1" and "0.conv1" of "layer1.0.conv1". */
static void try_name(search *s, const char *name) {
    for (const char *from = name; from != NULL; from = strchr(from, '.') != NULL ? strchr(from, '.') + 1 : NULL) {
        const char *end = from;
        while (*end != '\0') {
            char part[sizeof(s->best)];
            end += 1 + strcspn(end + 1, ".");
            if ((size_t)(end - from) >= sizeof(part)) break;
            snprintf(part, sizeof(part), "%.*s", (int)(end - from), from);
            const int distance = tdm__text_distance(s->core, part);
            if (distance >= s->distance) continue;
            s->distance = distance;
            memcpy(s->best, part, sizeof(part));
        }
    }
}

bool tdm__graph_nearest_pattern(const tdm_graph *graph, const char *pattern, char out[TDM_PATTERN_HINT]) {
    static const char around[] = "*?.";
    const size_t lead = strspn(pattern, around);
    size_t end = strlen(pattern);
    search s = {.core = ""};
    while (end > lead && strchr(around, pattern[end - 1]) != NULL) end--;
    if (end == lead || end - lead >= sizeof(s.core)) return false;
    memcpy(s.core, pattern + lead, end - lead);
    s.distance = 1 + (int)(end - lead) / 3;
    for (size_t i = 0; i < graph->param_count; i++) try_name(&s, graph->params[i].name);
    if (s.best[0] == '\0') return false;
    const int bytes = snprintf(out, TDM_PATTERN_HINT, "%.*s%s%s", (int)lead, pattern, s.best, pattern + end);
    const tdm_texts hint = {.count = 1, .item = {out}};
    return bytes < TDM_PATTERN_HINT && tdm__graph_unmatched(graph, &hint) < 0;
}
