/* manual_bash.c - completion for bash: verbs, the flags of each, and keys with the names that they take. */
#include "tools/manual.h"

#include <string.h>

static void flag_words(FILE *to, const tool_verb *verb) {
    for (const tool_flag *flag = verb->flags; flag < verb->flags + TOOL_FLAGS_MAX && flag->name; flag++) {
        fprintf(to, "%s ", flag->name);
    }
}

/* "en|zh" and names that stand in a flag's help are words to choose from; FILE and DIR are paths. */
static void flag_values(FILE *to, const tool_verb *verb) {
    for (const tool_flag *flag = verb->flags; flag < verb->flags + TOOL_FLAGS_MAX && flag->name; flag++) {
        if (!flag->value || !strchr(flag->value, '|')) continue;
        fprintf(to, "    %s) words='", flag->name);
        for (const char *c = flag->value; *c; c++) fputc(*c == '|' ? ' ' : *c, to);
        fputs("' ;;\n", to);
    }
}

static void key_word(void *user, const char *path, const json_t *key, bool is_section) {
    (void)key;
    if (!is_section && strcmp(path, "model.layers") != 0) fprintf(user, "%s= ", path);
}

static void key_values(void *user, const char *path, const json_t *key, bool is_section) {
    FILE *to = user;
    const json_t *names = manual_names(key);
    size_t i;
    json_t *name;
    if (is_section || !names) return;
    fprintf(to, "    %s) words='", path);
    if (json_is_object(names)) fputs("true false", to);
    json_array_foreach(names, i, name) fprintf(to, "%s%s", i ? " " : "", json_string_value(name));
    fputs("' ;;\n", to);
}

/* bash cuts words at `=`: what is offered behind one is the value alone, and flags and keys are found by looking back.
 * Words are told to be file names only where files are offered: bash writes `\=` for a key and `data/` for a verb
 * that a folder is named as else. */
static const char complete[] =
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key= words=\n"
    "    [ \"$word\" = = ] && { key=$before; word=; }\n"
    "    [ \"$before\" = = ] && key=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$verbs help --help --version\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    _tandem_values \"${COMP_WORDS[1]}\" \"${key:-$before}\"\n"
    "    if [ -n \"$words\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    _tandem_words \"${COMP_WORDS[1]}\"\n"
    "    case $word in -*) keys= ;; *) words= ;; esac\n"
    "    [ -n \"$key\" ] && keys=\n"
    "    COMPREPLY=($(compgen -W \"$words $keys\" -- \"$word\"))\n"
    "    [ \"${#COMPREPLY[@]}\" = 1 ] && [ \"${COMPREPLY[0]%=}\" != \"${COMPREPLY[0]}\" ] && compopt -o nospace 2>/dev/null\n"
    "    case $word in -*) return ;; esac\n"
    "    local files=($(compgen -f -- \"$word\"))\n"
    "    [ \"${#files[@]}\" = 0 ] || compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY+=(\"${files[@]}\")\n"
    "}\n"
    "complete -F _tandem tandem\n";

void manual_bash(FILE *to, const json_t *schema) {
    fputs("# bash completion for tandem, written by `tandem manual bash`\n_tandem_values() {\n    case $1:$2 in\n", to);
    fputs(
        "    *:--mode) words='single dp ddp' ;;\n    *:--resume) words='auto never' ;;\n    *:--color) words='auto always never' ;;\n",
        to);
    fputs("    init:--task) words='cifar mnist toy-mp resnet50-burnin' ;;\n", to);
    fputs("    help:*) words=$verbs ;;\n    esac\n    case $2 in\n", to);
    flag_values(to, &args_global);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) flag_values(to, *verb);
    manual_each_key(schema, key_values, to);
    fputs("    esac\n}\n_tandem_words() {\n    case $1 in\n", to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) {
        fprintf(to, "    %s) words='", (*verb)->name);
        flag_words(to, *verb);
        flag_words(to, &args_global);
        const char *keys = (*verb)->overrides ? "$all" : *verb == &verb_explain ? "${all//=}" : "";
        fprintf(to, "' keys=%s ;;\n", keys);
    }
    fputs("    esac\n}\n_tandem() {\n    local keys= verbs='", to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) fprintf(to, "%s ", (*verb)->name);
    fputs("' all='", to);
    manual_each_key(schema, key_word, to);
    fputs("'\n", to);
    fputs(complete, to);
}
