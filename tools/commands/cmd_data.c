/* cmd_data.c - `tandem data check|make`: reads every sample once, and writes small data sets for trials. */
#include "tools/terminal/term.h"

static int check_split(const tool *t, const char *name, const tdm_data_spec *spec, const tdm_data_use *use) {
    char *report = NULL;
    if (spec->format == TDM_DATA_NONE) return TDM_OK;
    tdm_status status = tdm_data_check(&t->host, spec, use, &report);
    if (!report) return tell_error(status);
    printf("%sdata.%s%s\n", term_on(stdout, TERM_BOLD), name, term_off(stdout));
    int code = tell_text(TDM_OK, report);
    return status != TDM_OK ? tell_error(status) : code;
}

static int check(tool *t) {
    FREED_BY(job_freed) tdm_config *config = NULL;
    t->word[0] = t->word[1]; /* CONFIG */
    int code = job_open(t, NULL, &config);
    if (code != TDM_OK) return code;
    const tdm_data_section *data = &tdm_config_job(config)->data;
    tdm_input_info inputs[TDM_SHAPES_MAX];
    tdm_data_use use = job_data_use(config, inputs);
    code = check_split(t, "train", &data->train, &use);
    const char *sheet = args_flag(t, "--sheet");
    if (code == TDM_OK && sheet) {
        tdm_status status = tdm_data_sheet(&t->host, &data->train, &use, sheet);
        if (status != TDM_OK) return tell_error(status);
        term_print("%s", sheet);
    }
    use.evaluates = true;
    use.trained_on = &data->train;
    int eval = check_split(t, "eval", &data->eval, &use);
    return code != TDM_OK ? code : eval;
}

static int make(tool *t) {
    const char *format = args_flag(t, "--format"), *folder = t->word[1];
    int64_t samples = 1000, seed = 0;
    if (!args_int(t, "--samples", 1, &samples) || !args_int(t, "--seed", INT64_MIN, &seed)) return TDM_E_USAGE;
    tdm_status status = tdm_data_make(&t->host, format ? format : "idx", folder, samples, seed);
    if (status != TDM_OK) return tell_error(status);
    term_print("%s", folder);
    return TDM_OK;
}

static int run(tool *t) {
    static const tool_part parts[] = {{"check", check}, {"make", make}, {NULL, NULL}};
    return args_part(t, parts);
}

const tool_verb verb_data = {"data",
                             "check CONFIG | make FOLDER",
                             "reads every sample once; writes small synthetic data sets",
                             "`check` opens the data of CONFIG, reads every sample and prints the number of\n"
                             "samples, how often each label occurs, and the mean and standard deviation of\n"
                             "each channel; of pictures also their sizes, and those that cannot be read; of\n"
                             "tables the columns and categories, and what data.eval has that data.train has not.\n"
                             "--sheet shows samples as the model sees them. `make` writes rendered digits into\n"
                             "FOLDER, in the format of MNIST (idx), CIFAR-10 (cifar10), npy or as PNG files\n"
                             "(image_folder).\n\n"
                             "examples:\n"
                             "  tandem data check job.yaml --sheet sheet.png\n"
                             "  tandem data make data/digits --format idx --samples 5000 --seed 1",
                             {{"--format", "idx|cifar10|npy|image_folder", "make: file format (idx)"},
                              {"--sheet", "FILE", "check: also write a contact sheet of data.train (PNG)"},
                              {"--samples", "N", "make: number of samples (1000)"},
                              {"--seed", "N", "make: seed of the digits (0)"}},
                             run,
                             {2, 2, true}};
