/* cmd_manual.c - `tandem manual`: generates man pages and shell completion from the table of verbs and the file's
 * schema. The build runs it and installs the result. The list of verbs does not show it. */
#include "tools/manual/manual.h"

#include <stdlib.h>
#include <string.h>

static json_t *read_schema(void) {
    TDM_FREED char *text = NULL;
    if (tdm_config_schema(TDM_ENGLISH, &text) != TDM_OK) memory_missing();
    return json_loads(text, 0, NULL);
}

static int run(tool *t) {
    static const struct {
        const char *name;
        void (*write)(FILE *to, const json_t *schema, const tool_verb *self);
    } pages[] = {{"tandem.1", manual_command}, {"tandem.yaml.5", manual_file}, {"bash", manual_bash}};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(t->word[0], pages[i].name) != 0) continue;
        FREED char *text = NULL;
        size_t bytes = 0;
        json_auto_t *schema = read_schema();
        FILE *to = text_open(&text, &bytes);
        pages[i].write(to, schema, t->verb);
        text_close(to);
        return files_deliver(t, text);
    }
    return args_wrong(t, "there is no page `%s`; the pages are tandem.1, tandem.yaml.5 and bash", t->word[0]);
}

const tool_verb verb_manual = {"manual",
                               "tandem.1|tandem.yaml.5|bash",
                               NULL,
                               "tandem.1 and tandem.yaml.5 are man pages; bash is the completion script for bash.\n\n"
                               "examples:\n"
                               "  tandem manual tandem.1 | man -l -\n"
                               "  source <(tandem manual bash)",
                               {{"--out", "FILE", "write to a file (-o)"}},
                               run,
                               {1, 1, false}};
