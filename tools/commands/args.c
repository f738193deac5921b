/* args.c - parses CONFIG, key.path=value overrides and flags, in any order after the verb. */
#include <tandem/comm.h>
#include <tandem/config.h>

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

/* If this process is one of several ranks, the others may wait for it: end their wait. */
static void notify_ranks(const tool *t, const char *why) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    if (strcmp(t->verb->name, "train") != 0) return;
    (void)tdm_launch_from_env(&facts); /* even after an error the facts suffice here */
    tdm_launch_fail(&facts, t->init_method, why);
}

int args_wrong(const tool *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    FREED char *text = text_format_list(format, args);
    va_end(args);
    term_error("%s", text);
    term_line("       see `tandem %s --help`", t->verb->name);
    notify_ranks(t, text);
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
    FREED char *ours = args_suggest(t->verb, name, value);
    if (ours) return args_wrong(t, "`tandem %s` has no flag `%s`; %s", t->verb->name, name, ours);
    const char *names[2 * TOOL_FLAGS_MAX];
    int count = 0;
    for (const tool_flag *flag = t->verb->flags; flag->name; flag++) names[count++] = flag->name;
    for (const tool_flag *flag = args_global.flags; flag->name; flag++) names[count++] = flag->name;
    FREED char *near = args_near(name, names, count);
    return args_wrong(t, "`tandem %s` has no flag `%s`%s", t->verb->name, name, near);
}

/* "a, b or c" */
static char *list_names(const char *const *names, int count) {
    char *out = text_copy(names[0]);
    for (int i = 1; i < count; i++) {
        FREED char *before = out;
        out = text_format("%s%s%s", before, i + 1 < count ? ", " : " or ", names[i]);
    }
    return out;
}

/* The number of `value` among the choices of a flag, "a|b|c". -1 after printing the error. */
static int choice_of(const tool *t, const tool_flag *flag, const char *value) {
    const char *names[TOOL_WORDS_MAX] = {NULL};
    FREED char *all = text_copy(flag->value);
    char *rest = all;
    int count = 0, choice = -1;
    while (rest) {
        names[count] = strsep(&rest, "|");
        if (strcmp(value, names[count]) == 0) choice = count;
        count++;
    }
    FREED char *listed = list_names(names, count);
    if (choice < 0) args_wrong(t, "`%s` must be %s, got `%s`", flag->name, listed, value);
    return choice;
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
    const tool_flag *own = args_find(t->verb, name), *flag = own ? own : args_find(&args_global, name);
    const char *value = equals ? equals + 1 : NULL, *next = *at + 1 < t->argc ? t->argv[*at + 1] : "--";
    if (!flag) {
        bool is_value = next[0] != '-' && !is_override(next);
        return unknown_flag(t, name, value ? value : is_value ? next : NULL);
    }
    if (!flag->value && value) return args_wrong(t, "`%s` takes no value, got `%s`", name, value);
    if (flag->value && !value) {
        if (strncmp(next, "--", 2) == 0)
            return args_wrong(t, "`%s` needs a value, %s: %s", name, flag->value, flag->help);
        value = next;
        ++*at;
    }
    if (own) {
        const char **kept = &t->flag_value[own - t->verb->flags];
        if (*kept) return args_wrong(t, "`%s` is given twice", name);
        *kept = value ? value : "";
    }
    if (strcmp(name, "--help") == 0) t->help = true;
    if (strcmp(name, "--quiet") == 0) t->quiet = true;
    if (strcmp(name, "--verbose") == 0) t->verbose = true;
    if (strcmp(name, "--color") != 0) return TDM_OK;
    int color = choice_of(t, flag, value);
    if (color >= 0) term_set_color((term_color)color);
    return color >= 0 ? TDM_OK : TDM_E_USAGE;
}

static int check_words(const tool *t) {
    if (t->help || t->word_count >= t->verb->takes.min_words) return TDM_OK;
    return args_wrong(t, "an argument is missing; usage: tandem %s %s", t->verb->name, t->verb->synopsis);
}

/* `optimizer.lr` without a value is a key that somebody wants to set. */
static int unexpected(const tool *t, const char *argument) {
    TDM_FREED char *explained = NULL;
    const bool is_key = t->verb->takes.overrides && tdm_config_explain(argument, TDM_ENGLISH, &explained) == TDM_OK;
    FREED char *advice = is_key ? text_format("; to set a key write `%s=VALUE`", argument) : text_copy("");
    return args_wrong(t, "unexpected argument `%s`%s; usage: tandem %s %s", argument, advice, t->verb->name,
                      t->verb->synopsis);
}

int args_parse(tool *t) {
    bool flags = true;
    t->override = memory_new((size_t)t->argc, sizeof *t->override);
    t->word = memory_new((size_t)t->argc + TOOL_WORDS_MAX, sizeof *t->word);
    for (int i = 2; i < t->argc; i++) {
        const char *argument = t->argv[i];
        if (flags && strcmp(argument, "--") == 0) {
            flags = false;
        } else if (flags && argument[0] == '-' && argument[1]) {
            int code = parse_flag(t, &i);
            if (code != TDM_OK) return code;
        } else if (t->verb->takes.overrides && is_override(argument)) {
            t->override[t->override_count++] = argument;
        } else if (t->word_count < t->verb->takes.max_words) {
            t->word[t->word_count++] = argument;
        } else {
            return unexpected(t, argument);
        }
    }
    return check_words(t);
}

const char *args_flag(const tool *t, const char *name) {
    const tool_flag *flag = args_find(t->verb, name);
    return flag ? t->flag_value[flag - t->verb->flags] : NULL;
}

const char *args_any(const tool *t, const char *const *names) {
    while (*names && !args_flag(t, *names)) names++;
    return *names;
}

bool args_choice(const tool *t, const char *name, int *value) {
    const char *text = args_flag(t, name);
    int choice = text ? choice_of(t, args_find(t->verb, name), text) : *value;
    if (choice >= 0) *value = choice;
    return choice >= 0;
}

int args_part(tool *t, const tool_part *parts) {
    const char *names[TOOL_PARTS_MAX] = {NULL}, *name = t->word[0];
    int count = 0;
    for (; parts[count].name; count++) {
        if (strcmp(name, parts[count].name) == 0) return parts[count].run(t);
        names[count] = parts[count].name;
    }
    FREED char *listed = list_names(names, count), *near = args_near(name, names, count);
    return args_wrong(t, "expected %s after `%s`, got `%s`%s", listed, t->verb->name, name, near);
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

bool args_number(const tool *t, const char *name, bool zero, double *value) {
    const char *text = args_flag(t, name);
    if (!text) return true;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(zero ? number >= 0 : number > 0) || number > 1e300) {
        args_wrong(t, "`%s` must be a number %s 0, got `%s`", name, zero ? "of at least" : "above", text);
        return false;
    }
    *value = number;
    return true;
}

static void print_flags(const tool_flag *flag) {
    for (; flag->name; flag++) {
        FREED char *left = text_format("%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        const char *gap = strlen(left) <= 25 ? "" : "\n";
        term_print_folded(stdout, text_format("  %-25s%s%*s%s", left, gap, gap[0] ? 29 : 2, "", flag->help));
    }
}

void args_print_flags(const tool_verb *verb) {
    print_flags(verb->flags);
    print_flags(args_global.flags);
}
