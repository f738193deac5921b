/* cmd_doctor.c - `tandem doctor`: what tandem finds on this machine, for bug reports. */
#include <tandem/doctor.h>

#include "tools/tool.h"

static int run(tool *t) {
    char *text = NULL;
    tdm_status status = tdm_environment(&t->host, args_flag(t, "--json") != NULL, &text);
    bool is_printed = status == TDM_E_CHECK; /* with what it has found */
    int code = tell_text(is_printed ? TDM_OK : status, text);
    return is_printed ? TDM_E_CHECK : code;
}

const tool_verb verb_doctor = {"doctor",
                               "",
                               "system, memory, limits, GPUs, modules found or missing; paste-ready",
                               "Prints what a bug report should contain. Exits with code 12 if it finds\n"
                               "something that will stop runs; each such line says what to do.\n\n"
                               "examples:\n"
                               "  tandem doctor\n"
                               "  tandem doctor --json > env.json",
                               {{"--json", NULL, "print JSON"}},
                               run,
                               {0, 0, false}};
