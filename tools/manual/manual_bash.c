/* manual_bash.c - completion for bash: verbs, their flags, keys, and the names that a value may have. */
#include "tools/manual/manual.h"

#include <ctype.h>
#include <string.h>

static void flag_words(FILE *to, const tool_verb *verb) {
    for (const tool_flag *flag = verb->flags; flag->name; flag++) {
        fprintf(to, "%s ", flag->name);
    }
}

/* The literal words of "auto|never|PATH": those in lower case. */
static void small_words(FILE *to, const char *text, size_t length) {
    for (const char *end = text + length; text < end; text += strcspn(text, "|") + 1) {
        int part = (int)strcspn(text, "| ");
        if (islower((unsigned char)text[0])) fprintf(to, "%.*s ", part, text);
    }
}

static void flag_values(FILE *to, const char *verb, const tool_verb *of) {
    for (const tool_flag *flag = of->flags; flag->name; flag++) {
        if (!flag->value) continue;
        bool is_path = strstr(flag->value, "PATH") || strstr(flag->value, "FILE") || strstr(flag->value, "DIR");
        fprintf(to, "    %s:%s) takes=%s words='", verb, flag->name, is_path ? "files" : "words");
        small_words(to, flag->value, strlen(flag->value));
        fputs("' ;;\n", to);
    }
}

/* The first words of "check CONFIG | make FOLDER". */
static void first_words(FILE *to, const char *synopsis) {
    for (const char *next; synopsis; synopsis = next ? next + 3 : NULL) {
        next = strstr(synopsis, " | ");
        small_words(to, synopsis, strcspn(synopsis, " "));
    }
}

static void key_word(void *user, const char *path, const json_t *key, bool is_section) {
    (void)key;
    if (!is_section && strcmp(path, "model.layers") != 0) fprintf(user, "%s= ", path);
}

static void part_word(void *user, const char *path, const json_t *key, bool is_section) {
    (void)key;
    if (is_section) fprintf(user, " %s", path);
}

static void key_values(void *user, const char *path, const json_t *key, bool is_section) {
    FILE *to = user;
    const json_t *names = manual_names(key);
    size_t i;
    json_t *name;
    if (is_section || !names) return;
    fprintf(to, "    *:%s) takes=words words='", path);
    if (json_is_object(names)) fputs("true false", to);
    json_array_foreach(names, i, name) fprintf(to, "%s%s", i ? " " : "", json_string_value(name));
    fputs("' ;;\n", to);
}

/* bash splits words at `=`: after a `=` only the value is completed, and its flag or key is one of the words before.
 * `compopt -o filenames` is set only if files are offered: otherwise bash writes `\=` after a key, and `data/` for a
 * verb if there is a folder of that name. */
static const char complete[] =
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key= takes= words= first=\n"
    "    [ \"$word\" = = ] && { key=$before; word=; }\n"
    "    [ \"$before\" = = ] && key=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$verbs help --help --version\" -- \"$word\"))\n"
    "        return\n"
    "    fi\n"
    "    _tandem_values \"${COMP_WORDS[1]}\" \"${key:-$before}\"\n"
    "    if [ -n \"$takes\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "        [ \"$takes\" = files ] && _tandem_files \"$word\"\n"
    "        return\n"
    "    fi\n"
    "    _tandem_words \"${COMP_WORDS[1]}\"\n"
    "    case $COMP_CWORD:$first:$word in *::* | *:-*) ;; 2:*)\n"
    "        COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
    "        return ;;\n"
    "    esac\n"
    "    case $word in -*) keys= ;; *) words= ;; esac\n"
    "    [ -n \"$key\" ] && keys=\n"
    "    COMPREPLY=($(compgen -W \"$words $keys\" -- \"$word\"))\n"
    "    [ \"${#COMPREPLY[@]}\" = 1 ] && [ \"${COMPREPLY[0]%=}\" != \"${COMPREPLY[0]}\" ] && compopt -o nospace 2>/dev/null\n"
    "    case $word in -*) ;; *) _tandem_files \"$word\" ;; esac\n"
    "}\n"
    "_tandem_files() {\n"
    "    local files=($(compgen -f -- \"$1\"))\n"
    "    [ \"${#files[@]}\" = 0 ] || compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY+=(\"${files[@]}\")\n"
    "}\n"
    "complete -F _tandem tandem\n";

static void verb_words(FILE *to, const tool_verb *verb) {
    fprintf(to, "    %s) words='", verb->name);
    flag_words(to, verb);
    flag_words(to, &args_global);
    const char *keys = verb->takes.overrides ? "$all" : verb == &verb_explain ? "${all//=}$parts" : "";
    fprintf(to, "' keys=\"%s\" first='", keys);
    first_words(to, verb->synopsis);
    fputs("' ;;\n", to);
}

void manual_bash(FILE *to, const json_t *schema, const tool_verb *self) {
    fputs("# bash completion for tandem, written by `tandem manual bash`\n_tandem_values() {\n    case $1:$2 in\n", to);
    flag_values(to, "*", &args_global);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) flag_values(to, (*verb)->name, *verb);
    flag_values(to, self->name, self);
    manual_each_key(schema, key_values, to);
    fputs("    esac\n}\n_tandem_words() {\n    case $1 in\n", to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) verb_words(to, *verb);
    verb_words(to, self);
    fputs("    help) first=\"$verbs", to);
    for (const tool_part *topic = tool_topics; topic->name; topic++) fprintf(to, " %s", topic->name);
    fputs("\" ;;\n    esac\n}\n_tandem() {\n    local keys= verbs='", to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) fprintf(to, "%s ", (*verb)->name);
    fputs("' all='", to);
    manual_each_key(schema, key_word, to);
    fputs("' parts='", to);
    manual_each_key(schema, part_word, to);
    fputs("'\n", to);
    fputs(complete, to);
}
