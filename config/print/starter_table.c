/* Writes a configuration for a table, from a look at it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"
#include "config/print/starter_net.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/tables/blanks.h"
#include "runtime/data/tables/look.h"

/* Samples that training goes through, and the width of the network. */
static const tdm_starter_limits limits = {.samples = 40000, .least_epochs = 10, .most_epochs = 100, .batch = 64};
enum { WIDTH = 64 };
/* A column of words with more different ones names its rows rather than kinds of them. A target that is a whole number
 * below CLASSES_MOST is a class. */
enum { CATEGORIES_MOST = 1000, CLASSES_MOST = 20 };

typedef enum use { USE_NUMBER, USE_CATEGORY, USE_IGNORED, USE_TARGET } use;

typedef struct starter {
    tdm_starter common;
    const tdm_table_seen *seen;
    const char *path;
    int64_t numbers, categories, ignored, gaps;
    int64_t classes;   /* 0: the target is a number */
    bool takes_counts; /* a column that counts rows is a number, for there is no other */
} starter;

static use use_of(const starter *s, int64_t i) {
    const tdm_column_seen *column = &s->seen->column[i];
    if (i == s->seen->target) return USE_TARGET;
    if (column->different == 0) return USE_IGNORED; /* all gaps */
    if (column->is_number) {
        const bool counts_rows = column->is_whole && column->rises && s->seen->rows > 2;
        return counts_rows && !s->takes_counts ? USE_IGNORED : USE_NUMBER;
    }
    const bool names_rows = column->different > CATEGORIES_MOST || 2 * column->different > s->seen->rows;
    return names_rows ? USE_IGNORED : USE_CATEGORY;
}

static bool is_named(const tdm_column_seen *column) {
    return column->name != NULL && !tdm__is_blank(column->name);
}

/* A column, as the keys of data.train name it. */
static void put_column(const starter *s, int64_t i) {
    if (is_named(&s->seen->column[i]))
        tdm__text_json_string(s->common.out, s->seen->column[i].name);
    else
        tdm__text_printf(s->common.out, "\"%lld\"", (long long)i);
}

/* Why a column is left out. Words in a few rows of numbers are probably typing errors. */
static void explain_ignored(const starter *s, int64_t i, tdm_text *out) {
    const tdm_column_seen *column = &s->seen->column[i];
    const bool chinese = s->common.chinese;
    if (column->different == 0)
        tdm__text_puts(out, chinese ? "全部缺失" : "all gaps");
    else if (column->is_number)
        tdm__text_puts(out, chinese ? "逐行加 1，视为行号"
                                    : "each row has 1 more than the row before, as numbers of rows have");
    else if (2 * column->words < s->seen->rows)
        tdm__text_printf(out,
                         chinese ? "第 %lld 行不是数值"
                                 : "no number in line %lld: correct it, and take the column out of `ignore`",
                         (long long)column->word_line);
    else
        tdm__text_printf(out, chinese ? "%lld 行中有 %s%lld 个不同的词" : "in %lld rows %s%lld different words",
                         (long long)s->seen->rows,
                         column->different > TDM_SEEN_MOST ? (chinese ? "超过 " : "more than ") : "",
                         (long long)tdm__starter_clamp(column->different, 0, TDM_SEEN_MOST));
}

static tdm_status fail_without_columns(const starter *s, const tdm_host *host) {
    starter english = *s;
    tdm_text why;
    english.common.chinese = false;
    english.common.out = &why;
    tdm__text_init(&why, host);
    const char *comma = "";
    for (int64_t i = 0; i < s->seen->columns && why.length < 300; i++) {
        if (i == s->seen->target) continue;
        tdm__text_puts(&why, comma);
        put_column(&english, i);
        tdm__text_puts(&why, ": ");
        explain_ignored(&english, i, &why);
        comma = "; ";
    }
    (void)tdm__fail(TDM_E_DATA, __FILE__, __LINE__, NULL,
                    "csv '%s': beside the target there is no column of numbers or of kinds%s%s", s->path,
                    why.failed || why.length == 0 ? "" : "; ", why.failed || why.length == 0 ? "" : why.data);
    tdm__text_deinit(&why);
    return TDM_E_DATA;
}

static const char *name_of(const starter *s, int64_t i, char out[80]) {
    if (s->seen->column[i].name != NULL)
        snprintf(out, 80, "'%.64s'", s->seen->column[i].name);
    else
        snprintf(out, 80, "%lld", (long long)i);
    return out;
}

/* A mistyped number would make a column of numbers one of categories, so it is refused. */
static tdm_status check_numbers(const starter *s, int64_t i) {
    const tdm_column_seen *column = &s->seen->column[i];
    char name[80];
    if (column->words == 0 || column->words > column->infinite + column->commas) return TDM_OK;
    if (column->commas > 0)
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s', line %lld, column %s: '%s' has a decimal comma; write numbers with a point, and without "
                 "separators of thousands",
                 s->path, (long long)column->comma_line, name_of(s, i, name), column->comma_cell);
    TDM_FAIL(TDM_E_DATA,
             "csv '%s', line %lld, column %s: '%s' is not a finite number; write a number, or leave the cell empty",
             s->path, (long long)column->infinite_line, name_of(s, i, name), column->infinite_cell);
}

/* Of a column whose words count. */
static tdm_status check_words(const starter *s, int64_t i) {
    const tdm_column_seen *column = &s->seen->column[i];
    char name[80];
    if (column->broken_line > 0)
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s', line %lld, column %s: the text is not UTF-8; convert the file, as with `iconv -f latin1 -t "
                 "utf-8`",
                 s->path, (long long)column->broken_line, name_of(s, i, name));
    if (column->blanks_line > 0)
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s', line %lld, column %s: '%s' is the text of an earlier line, but for blanks; write them in "
                 "one way",
                 s->path, (long long)column->blanks_line, name_of(s, i, name), column->blanks_cell);
    return TDM_OK;
}

static tdm_status check_cells(const starter *s) {
    char name[80];
    for (int64_t i = 0; i < s->seen->columns; i++) {
        const tdm_column_seen *column = &s->seen->column[i];
        TDM_TRY(check_numbers(s, i));
        const use how = use_of(s, i);
        if (how != USE_IGNORED && column->name != NULL && !is_named(column))
            TDM_FAIL(TDM_E_DATA, "csv '%s', column %lld of the first row: the column has no name; write one", s->path,
                     (long long)i + 1);
        if (how == USE_CATEGORY || (how == USE_TARGET && !column->is_number)) TDM_TRY(check_words(s, i));
        if (how == USE_TARGET && column->words > 0 && 2 * column->words < s->seen->rows - column->gaps &&
            column->different > CLASSES_MOST)
            TDM_FAIL(
                TDM_E_DATA,
                "csv '%s', line %lld: the target, column %s, has no number here; correct it, or name another column "
                "with --target",
                s->path, (long long)column->word_line, name_of(s, i, name));
    }
    return TDM_OK;
}

static void count_uses(starter *s) {
    s->numbers = s->categories = s->ignored = s->gaps = 0;
    for (int64_t i = 0; i < s->seen->columns; i++) {
        const use how = use_of(s, i);
        s->numbers += how == USE_NUMBER;
        s->categories += how == USE_CATEGORY;
        s->ignored += how == USE_IGNORED;
        if (how == USE_NUMBER) s->gaps += s->seen->column[i].gaps;
    }
}

static bool is_constant(const tdm_column_seen *column) {
    return column->is_number ? column->least == column->most : column->different == 1;
}

static int64_t outputs_of(const starter *s) {
    return s->classes > 0 ? s->classes : 1;
}

static tdm_status choose(starter *s, const tdm_host *host) {
    const tdm_column_seen *target = &s->seen->column[s->seen->target];
    char name[80];
    TDM_TRY(check_cells(s));
    count_uses(s);
    s->takes_counts = s->numbers + s->categories == 0;
    if (s->takes_counts) count_uses(s);
    if (target->gaps > 0)
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s': the target's column has no label in %lld row%s; fill in all labels, or leave such rows out",
                 s->path, (long long)target->gaps, target->gaps == 1 ? "" : "s");
    if (is_constant(target))
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s': the target, column %s, is the same in all %lld rows; name another column with --target",
                 s->path, name_of(s, s->seen->target, name), (long long)s->seen->rows);
    if (s->numbers + s->categories == 0) return fail_without_columns(s, host);
    if (s->categories > TDM_LIST_MAX || s->ignored > TDM_LIST_MAX)
        TDM_FAIL(TDM_E_DATA, "csv '%s': %lld columns of words and %lld without use; a file has at most %d of each",
                 s->path, (long long)s->categories, (long long)s->ignored, TDM_LIST_MAX);
    const bool is_class = target->is_number && target->is_whole && target->least >= 0.0 &&
                          target->most < CLASSES_MOST && 2 * target->different <= s->seen->rows;
    s->classes = !target->is_number ? target->different : is_class ? (int64_t)target->most + 1 : 0;
    if (!target->is_number && (s->classes > CATEGORIES_MOST || 2 * s->classes > s->seen->rows || s->classes < 2))
        TDM_FAIL(TDM_E_DATA,
                 "csv '%s': the target has %s%lld different words in %lld rows; name another column with --target",
                 s->path, s->classes > TDM_SEEN_MOST ? "more than " : "",
                 (long long)tdm__starter_clamp(s->classes, 0, TDM_SEEN_MOST), (long long)s->seen->rows);
    tdm__starter_choose(&s->common, s->seen->rows, &limits);
    if (s->common.net == NULL) return TDM_OK;
    return tdm__starter_net_check(s->common.net, 1, (const int64_t[]){s->numbers + s->categories}, outputs_of(s));
}

static void put_list(const starter *s, const char *key, use wanted) {
    const char *comma = "[";
    for (int64_t i = 0; i < s->seen->columns; i++) {
        if (use_of(s, i) != wanted) continue;
        if (*comma == '[') tdm__text_printf(s->common.out, "    %s: ", key);
        tdm__text_puts(s->common.out, comma);
        put_column(s, i);
        comma = ", ";
    }
    if (*comma != '[') tdm__text_puts(s->common.out, "]\n");
}

/* A column's name in a comment must not end it. */
static void put_category(const starter *s, int64_t i, int64_t which) {
    const tdm_column_seen *column = &s->seen->column[i];
    const int64_t item = s->numbers + which;
    tdm__text_puts(s->common.out, "    # ");
    put_column(s, i);
    tdm__text_printf(
        s->common.out,
        "\n    - slice: {start: %lld, end: %lld, input: input}\n"
        "    - embedding: {name: category%lld, vocabulary: %lld, dim: %d}\n    - flatten: {id: category%lld}\n",
        (long long)item, (long long)item + 1, (long long)which, (long long)(column->different + column->gap_words) + 1,
        WIDTH, (long long)which);
    if (which == 0 && s->numbers == 0) return;
    tdm__text_puts(s->common.out, "    - add: {input: [");
    if (which > 0 && (which > 1 || s->numbers > 0))
        tdm__text_printf(s->common.out, "sum%lld", (long long)which - 1);
    else
        tdm__text_puts(s->common.out, which > 0 ? "category0" : "numbers");
    tdm__text_printf(s->common.out, ", category%lld], id: sum%lld}\n", (long long)which, (long long)which);
}

static tdm_status put_model(const starter *s) {
    int64_t which = 0;
    if (s->common.net != NULL) return tdm__starter_put_net(&s->common, outputs_of(s));
    tdm__text_printf(s->common.out, "model:\n  input: [%lld]\n", (long long)(s->numbers + s->categories));
    tdm__starter_note(&s->common, 2, "each category has features of its own, which are added to those of the numbers",
                      "每个类别有自己的特征，与数值的特征相加");
    tdm__text_puts(s->common.out, "  layers:\n");
    if (s->numbers > 0 && s->categories > 0)
        tdm__text_printf(s->common.out, "    - slice: {start: 0, end: %lld}\n", (long long)s->numbers);
    if (s->numbers > 0)
        tdm__text_printf(s->common.out, "    - linear: {name: numbers, out: %d%s}\n", WIDTH,
                         s->categories > 0 ? ", id: numbers" : "");
    for (int64_t i = 0; i < s->seen->columns; i++) {
        if (use_of(s, i) == USE_CATEGORY) put_category(s, i, which++);
    }
    tdm__text_printf(s->common.out,
                     "    - relu\n    - linear: {name: hidden, out: %d}\n    - relu\n    - dropout: 0.1\n"
                     "    - linear: {name: output, out: %lld}\n",
                     WIDTH, (long long)outputs_of(s));
    return TDM_OK;
}

static void put_data(const starter *s) {
    tdm__text_puts(s->common.out, "data:\n  train:\n    format: csv\n    path: ");
    tdm__text_json_string(s->common.out, s->path);
    tdm__text_puts(s->common.out, "\n    label: ");
    put_column(s, s->seen->target);
    tdm__text_puts(s->common.out, "\n");
    for (int64_t i = 0; i < s->seen->columns; i++) {
        if (use_of(s, i) != USE_IGNORED) continue;
        tdm__text_puts(s->common.out, "    # ");
        put_column(s, i);
        tdm__text_puts(s->common.out, s->common.chinese ? "：" : ": ");
        explain_ignored(s, i, s->common.out);
        tdm__text_puts(s->common.out, "\n");
    }
    put_list(s, "ignore", USE_IGNORED);
    put_list(s, "categories", USE_CATEGORY);
    if (s->categories > 0) {
        tdm__starter_note(&s->common, 4, "a category that is not in the part trained on counts as number 0",
                          "训练部分中没有的类别记为 0");
        tdm__text_puts(s->common.out, "    unseen: unknown\n");
    }
    tdm__starter_note(&s->common, 4, "gaps: error, mean or zero", "缺失值：error、mean 或 zero");
    tdm__text_printf(s->common.out, "    missing: %s\n    standardize: true\n", s->gaps > 0 ? "mean" : "error");
    if (s->classes == 0) tdm__text_puts(s->common.out, "    standardize_target: true\n");
    tdm__starter_note(&s->common, 4, "a fifth of the rows, drawn by chance, is held out to test the model",
                      "随机留出五分之一的行用于测试");
    tdm__text_puts(s->common.out, "    holdout: 0.2\n  eval: {format: csv, path: ");
    tdm__text_json_string(s->common.out, s->path);
    tdm__text_puts(s->common.out, ", holdout: 0.2}\n");
}

static tdm_status put_all(const starter *s) {
    tdm__text_printf(s->common.out,
                     s->common.chinese
                         ? "# %lld 行：%lld 列数值，%lld 列类别；由 tandem init 写出。\n"
                         : "# rows: %lld, columns of numbers: %lld, of categories: %lld; written by tandem init.\n",
                     (long long)s->seen->rows, (long long)s->numbers, (long long)s->categories);
    tdm__text_puts(s->common.out, "tandem: 1\nname: table\n");
    TDM_TRY(put_model(s));
    put_data(s);
    tdm__starter_put_learning(&s->common, s->classes > 0);
    return TDM_OK;
}

static tdm_status write(starter *s, const tdm_host *host, char **out) {
    tdm_text text;
    TDM_TRY(tdm__starter_check_path(s->path, "file"));
    TDM_TRY(choose(s, host));
    tdm__text_init(&text, host);
    s->common.out = &text;
    const tdm_status status = put_all(s);
    if (status == TDM_OK) return tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm__starter_table(const tdm_host *host, const char *path, const char *target, const tdm_starter_net *net,
                              tdm_language language, char **out) {
    tdm_table_seen seen;
    tdm_status status = tdm__table_look(host, path, target, &seen);
    char *whole = status == TDM_OK ? realpath(path, NULL) : NULL; /* the file may be written anywhere */
    if (status == TDM_OK && whole == NULL)
        status = tdm__fail(errno == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, __FILE__, __LINE__, NULL,
                           "'%s' cannot be found: %m", path);
    starter s = {.seen = &seen,
                 .path = whole,
                 .common = {.chinese = language == TDM_CHINESE, .net = net, .class_loss = tdm__starter_net_loss(net)}};
    if (status == TDM_OK) status = write(&s, host, out);
    free(whole);
    tdm__table_seen_close(&seen);
    return status;
}

tdm_status tdm_config_starter_table(const tdm_host *host, const char *path, const char *target, tdm_language language,
                                    char **out) {
    if (path == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_starter_table: path or out is NULL");
    *out = NULL;
    TDM_EXTRA(TEXTS);
    TDM_TRY(tdm__host_take(&host));
    return tdm__starter_table(host, path, target, NULL, language, out);
}
