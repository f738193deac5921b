/* manual_man.c - the two man pages, in mdoc. */
#include "tools/manual/manual.h"

#include <stdlib.h>
#include <string.h>

/* Writes text. A backslash would be an escape, a hyphen is a minus; `quote` is doubled. */
static void roff_text(FILE *to, const char *text, char quote) {
    for (; *text; text++) {
        if (*text == quote) fputc(quote, to);
        if (*text == '-') fputc('\\', to);
        if (*text == '\\')
            fputs("\\e", to);
        else
            fputc(*text, to);
    }
}

/* Writes a line of text. A leading dot or quote would be a request. */
static void roff(FILE *to, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", to);
    roff_text(to, text, 0);
}

/* Writes an argument of a macro: in quotes. */
static void roff_word(FILE *to, const char *text) {
    fputc('"', to);
    roff_text(to, text, '"');
    fputc('"', to);
}

static void item(FILE *to, const char *name, const char *about) {
    fputs(".It ", to);
    roff_word(to, name);
    fputc('\n', to);
    roff(to, about);
    fputc('\n', to);
}

static void head(FILE *to, const char *title, const char *section, const char *name, const char *about) {
    fprintf(
        to,
        ".\\\" written by `tandem manual`\n.Dd November 22, 2026\n.Dt %s %s\n.Os tandem %s\n.Sh NAME\n.Nm %s\n.Nd %s\n",
        title, section, tdm_version(), name, about);
}

/* Help texts have a fixed layout, which is kept. */
static void layout(FILE *to, const char *text) {
    fputs(".Bd -literal\n", to);
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        FREED char *line = text_format("%.*s", (int)strcspn(text, "\n"), text);
        roff(to, line);
        fputc('\n', to);
    }
    fputs(".Ed\n", to);
}

static void flags(FILE *to, const tool_verb *verb) {
    fputs(".Bl -tag -width Ds\n", to);
    for (const tool_flag *flag = verb->flags; flag->name; flag++) {
        FREED char *left = text_format("%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
        item(to, left, flag->help);
    }
    fputs(".El\n", to);
}

static void verb_part(FILE *to, const tool_verb *verb) {
    fprintf(to, ".Ss %s\n", verb->name);
    FREED char *usage = text_format("tandem %s%s%s [flags]", verb->name, verb->synopsis[0] ? " " : "", verb->synopsis);
    FREED char *whole = text_format("%s\n\n%s", usage, verb->text);
    layout(to, whole);
    if (verb->flags[0].name) flags(to, verb);
}

void manual_command(FILE *to, const json_t *schema, const tool_verb *self) {
    (void)schema, (void)self;
    head(to, "TANDEM", "1", "tandem", "trains models described in YAML on one device, or data-parallel as dp or ddp");
    fputs(".Sh SYNOPSIS\n.Nm\n.Ar VERB\n.Op Ar CONFIG\n.Op Ar key.path=value ...\n.Op Ar flags\n.Sh DESCRIPTION\n", to);
    fputs("Results go to standard output, everything else to standard error.\n"
          "The keys of CONFIG are in\n.Xr tandem.yaml 5 .\n.Bl -tag -width Ds\n",
          to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) {
        fprintf(to, ".It %s\n", (*verb)->name);
        roff(to, (*verb)->summary);
        fputc('\n', to);
    }
    fputs(".El\n.Pp\nEvery verb takes:\n", to);
    flags(to, &args_global);
    fputs(".Sh VERBS\n", to);
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) verb_part(to, *verb);
    fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n", to);
#define X(name, number, text) fprintf(to, ".It %d\n%s\n", number, text);
    TDM_STATUS_MAP(X)
#undef X
    fputs(".It 128+n\nended by signal n\n.El\n.Sh SEE ALSO\n.Xr tandem.yaml 5\n", to);
}

/* The values that the schema allows: "one of a, b". */
static void key_values(FILE *to, const json_t *key) {
    const json_t *names = manual_names(key);
    const char *initial = manual_text(key, "$comment");
    size_t i;
    json_t *name;
    if (json_is_array(names)) {
        fputs(".br\none of", to);
        json_array_foreach(names, i, name) fprintf(to, "%s %s", i ? "," : "", json_string_value(name));
        fputc('\n', to);
    }
    if (json_is_object(names)) fputs(".br\ntrue or false\n", to);
    if (!initial[0]) return;
    fputs(".br\n", to);
    roff(to, initial);
    fputc('\n', to);
}

static void key_part(void *user, const char *path, const json_t *key, bool is_section) {
    FILE *to = user;
    if (is_section) {
        fputs(".El\n.Ss ", to);
        roff_word(to, path);
        fputc('\n', to);
        roff(to, manual_text(key, "description"));
        fputs("\n.Bl -tag -width Ds\n", to);
        return;
    }
    item(to, path, manual_text(key, "description"));
    key_values(to, key);
}

static void layer_kinds(FILE *to) {
    TDM_FREED char *text = NULL;
    if (tdm_config_explain("layers", TDM_ENGLISH, &text) != TDM_OK) return;
    fputs(".Sh LAYERS\n", to);
    layout(to, text);
}

void manual_file(FILE *to, const json_t *schema, const tool_verb *self) {
    (void)self;
    head(to, "TANDEM.YAML", "5", "tandem.yaml", "a training job of tandem");
    fputs(".Sh DESCRIPTION\nOne YAML file describes a model, its data and its training.\n"
          "On the command line of\n.Xr tandem 1\na key is written with its whole path, as here:\n"
          ".Dl tandem train job.yaml optimizer.lr=0.01\n"
          "`tandem init` writes a file to start from, `tandem explain KEY` explains one key.\n"
          ".Sh KEYS\n.Bl -tag -width Ds\n",
          to);
    manual_each_key(schema, key_part, to);
    fputs(".El\n", to);
    layer_kinds(to);
    fputs(".Sh SEE ALSO\n.Xr tandem 1\n", to);
}
