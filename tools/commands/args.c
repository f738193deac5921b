/* args.c - parses CONFIG, key.path=value overrides and flags, in any order after the verb. */
#include <tandem/comm.h>

#include "tools/terminal/term.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const tool_verb args_global = {
    .flags = {{"--help", NULL, "this text"},
              {"--quiet", NULL, "only errors on stderr"},
              {"--verbose", NULL, "print the library's log on stderr too"},
              {"--color", "auto|always|never", "colour on stderr and stdout (auto: on a terminal)"}}};
static const tool_flag *const global_flags = args_global.flags;
enum { GLOBAL_FLAGS = 4 };

static int verb_flag_count(const tool_verb *verb) {
    int count = 0;
    while (count < TOOL_FLAGS_MAX && verb->flags[count].name) count++;
    return count;
}

/* If this process is one of several ranks, the others may wait for it: end their wait. */
static void notify_ranks(const tool *t, const char *why) {
    tdm_launch_facts facts;
    if (t->verb != &verb_train) return;
    (void)tdm_launch_from_env(&facts); /* even after an error the facts suffice here */
    tdm_launch_fail(&facts, t->init_method, why);
}

int args_wrong(const tool *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = text_format_list(format, args);
    va_end(args);
    term_error("%s", text);
    term_line("       see `tandem %s --help`", t->verb->name);
    notify_ranks(t, text);
    free(text);
    return TDM_E_USAGE;
}

/* True if the part before `=` looks like a key path: key.path, model.layers[3].kernel. */
static bool is_override(const char *argument) {
    const char *equals = strchr(argument, '=');
    if (!equals || equals == argument || !isalpha((unsigned char)argument[0])) return false;
    for (const char *c = argument; c < equals; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("._-[]", *c)) return false;
    }
    return true;
}

/* `value`: the argument after the flag if it could be the flag's value, else NULL. */
static int unknown_flag(const tool *t, const char *name, const char *value) {
    char *ours = args_suggest(t->verb, name, value);
    if (ours) {
        int code = args_wrong(t, "`tandem %s` has no flag `%s`; %s", t->verb->name, name, ours);
        free(ours);
        return code;
    }
    const char *names[TOOL_FLAGS_MAX + GLOBAL_FLAGS];
    int count = verb_flag_count(t->verb);
    for (int i = 0; i < count; i++) names[i] = t->verb->flags[i].name;
    for (int i = 0; i < GLOBAL_FLAGS; i++) names[count++] = global_flags[i].name;
    const char *near = tdm_text_nearest(name, names, count);
    if (near) return args_wrong(t, "`tandem %s` has no flag `%s`; did you mean `%s`?", t->verb->name, name, near);
    return args_wrong(t, "`tandem %s` has no flag `%s`", t->verb->name, name);
}

/* Parses the flag at argv[*at]; its value may be the next argument. */
static int parse_flag(tool *t, int *at) {
    static const char *const shorts[][2] = {{"-h", "--help"}, {"-q", "--quiet"}, {"-v", "--verbose"}, {"-o", "--out"}};
    char name[64];
    const char *argument = t->argv[*at];
    const char *equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - argument : 60), argument);
    for (size_t i = 0; i < sizeof shorts / sizeof shorts[0]; i++) {
        if (strcmp(name, shorts[i][0]) == 0) snprintf(name, sizeof name, "%s", shorts[i][1]);
    }
    const tool_flag *flag = NULL;
    int own = -1;
    for (int i = 0; i < verb_flag_count(t->verb); i++) {
        if (strcmp(t->verb->flags[i].name, name) == 0) flag = &t->verb->flags[own = i];
    }
    for (int i = 0; i < GLOBAL_FLAGS && !flag; i++) {
        if (strcmp(global_flags[i].name, name) == 0) flag = &global_flags[i];
    }
    const char *value = equals ? equals + 1 : NULL;
    if (!flag) {
        const char *next = *at + 1 < t->argc ? t->argv[*at + 1] : "-";
        bool is_value = next[0] != '-' && !is_override(next);
        return unknown_flag(t, name, value ? value : is_value ? next : NULL);
    }
    if (!flag->value && value) return args_wrong(t, "`%s` takes no value, got `%s`", name, value);
    if (flag->value && !value) {
        value = *at + 1 < t->argc ? t->argv[*at + 1] : "--";
        if (strncmp(value, "--", 2) == 0)
            return args_wrong(t, "`%s` needs a value, %s: %s", name, flag->value, flag->help);
        ++*at;
    }
    if (own >= 0) {
        if (t->flag_value[own]) return args_wrong(t, "`%s` is given twice", name);
        t->flag_value[own] = value ? value : "";
    }
    if (strcmp(name, "--help") == 0) t->help = true;
    if (strcmp(name, "--quiet") == 0) t->quiet = true;
    if (strcmp(name, "--verbose") == 0) t->verbose = true;
    if (strcmp(name, "--color") == 0 && !term_set_color(value)) {
        return args_wrong(t, "`--color` must be auto, always or never, got `%s`", value);
    }
    return TDM_OK;
}

static int check_words(const tool *t) {
    if (t->help || t->word_count >= t->verb->min_words) return TDM_OK;
    return args_wrong(t, "an argument is missing; usage: tandem %s %s", t->verb->name, t->verb->synopsis);
}

int args_parse(tool *t) {
    bool flags = true;
    t->override = memory_new((size_t)t->argc, sizeof *t->override);
    for (int i = 2; i < t->argc; i++) {
        const char *argument = t->argv[i];
        if (flags && strcmp(argument, "--") == 0) {
            flags = false;
        } else if (flags && argument[0] == '-' && argument[1]) {
            int code = parse_flag(t, &i);
            if (code != TDM_OK) return code;
        } else if (t->verb->overrides && is_override(argument)) {
            t->override[t->override_count++] = argument;
        } else if (t->word_count < t->verb->max_words) {
            t->word[t->word_count++] = argument;
        } else {
            return args_wrong(t, "unexpected argument `%s`; usage: tandem %s %s", argument, t->verb->name,
                              t->verb->synopsis);
        }
    }
    return check_words(t);
}

const char *args_flag(const tool *t, const char *name) {
    for (int i = 0; i < verb_flag_count(t->verb); i++) {
        if (strcmp(t->verb->flags[i].name, name) == 0) return t->flag_value[i];
    }
    return NULL;
}

bool args_int(const tool *t, const char *name, int64_t min, int64_t *value) {
    const char *text = args_flag(t, name);
    if (!text) return true;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < min) {
        args_wrong(t, "`%s` must be a whole number of at least %lld, got `%s`", name, (long long)min, text);
        return false;
    }
    *value = number;
    return true;
}

bool args_number(const tool *t, const char *name, double *value) {
    const char *text = args_flag(t, name);
    if (!text) return true;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number >= 0) || number > 1e300) {
        args_wrong(t, "`%s` must be a number of at least 0, got `%s`", name, text);
        return false;
    }
    *value = number;
    return true;
}

void args_print_flags(const tool_verb *verb) {
    const tool_flag *groups[] = {verb->flags, global_flags};
    int counts[] = {verb_flag_count(verb), GLOBAL_FLAGS};
    for (int g = 0; g < 2; g++) {
        for (int i = 0; i < counts[g]; i++) {
            const tool_flag *flag = &groups[g][i];
            char *left = text_format("%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
            const char *gap = strlen(left) <= 25 ? "" : "\n";
            term_print_folded(stdout, text_format("  %-25s%s%*s%s", left, gap, gap[0] ? 29 : 2, "", flag->help));
            free(left);
        }
    }
}
