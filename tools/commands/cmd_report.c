/* cmd_report.c - `tandem report`: rebuilds report.html from a run directory. */
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"
#include "tools/report/runs.h"
#include "tools/terminal/term.h"

static char *last_part(const char *dir) {
    size_t end = strlen(dir), start;
    while (end > 1 && dir[end - 1] == '/') end--;
    for (start = end; start > 0 && dir[start - 1] != '/'; start--) continue;
    return text_format("%.*s", (int)(end - start), dir + start);
}

/* Two runs in the same mode are labelled by their folders. */
static void name_by_folder(report_run runs[2]) {
    char *name[2] = {last_part(runs[0].dir), last_part(runs[1].dir)};
    bool alike = strcmp(name[0], name[1]) == 0;
    for (int i = 0; i < 2; i++) {
        free(runs[i].label);
        runs[i].label = alike ? text_copy(runs[i].dir) : text_copy(name[i]);
        free(name[i]);
    }
}

static int run(tool *t) {
    static const char metrics[] = "metrics.jsonl";
    const char *against = args_flag(t, "--against"), *out = args_flag(t, "--out");
    report_run runs[2];
    int count = 0, in = TDM_ENGLISH;
    if (!args_choice(t, "--lang", &in)) return TDM_E_USAGE;
    if (runs_lacks(t->word[0], metrics) || (against && runs_lacks(against, metrics))) return TDM_E_DATA;
    int code = report_read(&runs[count], t->word[0]);
    if (code == TDM_OK) {
        count++;
        if (against) code = report_read(&runs[count], against);
        if (against && code == TDM_OK) count++;
    }
    if (count == 2 && strcmp(runs[0].label, runs[1].label) == 0) name_by_folder(runs);
    FREED char *path = out ? text_copy(out) : text_format("%s/report.html", t->word[0]);
    if (code == TDM_OK) code = report_write(path, runs, count, NULL, in == TDM_CHINESE);
    if (code == TDM_OK) term_print("%s", path);
    for (int i = 0; i < count; i++) report_free(&runs[i]);
    return code;
}

const tool_verb verb_report = {"report",
                               "RUN-DIR",
                               "rebuilds report.html from a run directory",
                               "Writes one page with curves, step times, memory, configuration and\n"
                               "environment. The page needs no scripts and no network. Prints its path.\n\n"
                               "examples:\n"
                               "  tandem report runs/cifar/20261120T143000Z\n"
                               "  tandem report runs/a --against runs/b -o a-b.html --lang zh",
                               {{"--against", "RUN-DIR", "a second run to compare with"},
                                {"--out", "FILE", "write to FILE instead of RUN-DIR/report.html (-o)"},
                                {"--lang", "en|zh", "language of the page (en)"}},
                               run,
                               {1, 1, false}};
