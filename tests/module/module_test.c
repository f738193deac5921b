/* Finding modules, and what is said of those that are absent, foreign, broken or unwilling. */
#include <unistd.h>

#include <tandem/job.h>

#include "runtime/graph/graph.h"
#include "runtime/module/module.h"
#include "tests/support/tdm_test.h"

static const tdm_module *find(const char *name, const char *path, tdm_module_report *report) {
    const tdm_module *module = NULL;
    CHECK_OK(tdm__module_find(&module, tdm_host_default(), name, path, report));
    CHECK((module != NULL) == report->usable);
    return module;
}

TEST(good_module_is_opened_and_told_the_calls) {
    tdm_module_report report;
    const tdm_module *module = find("good", "/no/such/folder::" MODULES, &report);
    REQUIRE(module != NULL);
    CHECK_TEXT(module->name, "good");
    CHECK_TEXT(report.path, MODULES "/libtandem-good.so");
    CHECK_TEXT(report.text, "flux capacitor 1.21");
    const tdm_kernel_args args = {0};
    CHECK_STATUS(module->kernels[0]->forward(&args), TDM_E_DEVICE);
    CHECK_TEXT(tdm_error_message(), "fake kernel: out of plutonium");
    CHECK(find("good", MODULES, &report) == module);
}

TEST(environment_names_the_folders) {
    tdm_module_report report;
    setenv("TANDEM_MODULE_PATH", MODULES, 1);
    CHECK(find("good", NULL, &report) != NULL);
    CHECK(find("good", "/no/such/folder", &report) == NULL);
    unsetenv("TANDEM_MODULE_PATH");
    CHECK(find("good", NULL, &report) == NULL);
}

TEST(absent_module_is_a_list_of_folders) {
    tdm_module_report report;
    CHECK(find("absent", "/no/such/folder:/nor/this", &report) == NULL);
    CHECK_TEXT(report.path, "");
    CHECK_HAS(report.text, "libtandem-absent.so is in none of /no/such/folder, /nor/this, ");
    CHECK_HAS(report.text, "/lib/tandem");
    CHECK_HAS(report.text, "TANDEM_MODULE_PATH");
    CHECK(find("absent", "/no/such/folder:/no/such/folder", &report) == NULL);
    CHECK(strstr(strstr(report.text, "/no/such/folder") + 1, "/no/such/folder") == NULL);
}

/* A module that this build is without says why, and gives the one advice that helps. */
TEST(what_was_not_built_says_why) {
    static const struct {
        const char *name, *why;
    } absent[] = {
#define TDM_MODULE(name, absent) {#name, absent},
#include "modules.def"
#undef TDM_MODULE
    };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        tdm_module_report report;
        if (absent[i].why[0] == '\0') continue;
        CHECK(find(absent[i].name, "/no/such/folder", &report) == NULL);
        CHECK(strncmp(report.text, "it was not built: ", 18) == 0);
        CHECK(strncmp(report.text + 18, absent[i].why, strlen(absent[i].why)) == 0);
        CHECK_HAS(report.text, "and build tandem again (libtandem-");
        CHECK_HAS(report.text, ".so is in none of /no/such/folder");
        CHECK(strstr(report.text, "install it") == NULL);
    }
}

static void refused(const char *name, const char *sentence) {
    tdm_module_report report;
    CHECK(find(name, MODULES, &report) == NULL);
    CHECK_HAS(report.path, name);
    CHECK_HAS(report.text, sentence);
}

TEST(unusable_modules_say_why) {
    char abi[64];
    snprintf(abi, sizeof(abi), "has module interface %u, this tandem has %u", TDM_MODULE_ABI + 7, TDM_MODULE_ABI);
    refused("other_abi", abi);
    refused("unwilling", "this processor has no flux capacitor");
    refused("misnamed", "is the module 'else', not 'misnamed'");
    refused("unprobed", "has no name or no probe");
    refused("no_symbol", "has no symbol tdm_module_v1");
}

TEST(damaged_file_gives_the_loader_s_sentence) {
    char folder[] = "/tmp/tandem-module-XXXXXX", path[128];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/libtandem-damaged.so", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs("no shared object", file);
    fclose(file);
    tdm_module_report report;
    CHECK(find("damaged", folder, &report) == NULL);
    CHECK_TEXT(report.path, path);
    CHECK_HAS(report.text, "damaged.so: file too short");
    unlink(path);
    rmdir(folder);
}

TEST(long_paths_are_no_overrun) {
    static char path[20000];
    tdm_module_report report;
    memset(path, 'x', sizeof path - 1);
    CHECK(find("absent", path, &report) == NULL);
    for (size_t i = 3000; i < sizeof path - 1; i += 3000) path[i] = ':';
    CHECK(find("absent", path, &report) == NULL);
    CHECK(strlen(report.text) < sizeof report.text);
}

TEST(kernels_of_a_module_come_first) {
    const tdm_host *host = tdm_host_default();
    tdm_compute_options wish = {.device = TDM_DEVICE_CPU, .module_path = MODULES "/kernels"};
    tdm_compute compute;
    REQUIRE_OK(tdm__compute_open(&compute, host, &wish));
    CHECK(compute.report.usable);
    CHECK_TEXT(compute.kernels[0]->variant, "fake");
    CHECK(compute.kernels[1] == tdm_builtin_kernels[0]);
    tdm__compute_close(&compute, host);
    wish.kernels = TDM_KERNELS_REF;
    REQUIRE_OK(tdm__compute_open(&compute, host, &wish));
    CHECK(!compute.report.usable);
    CHECK_HAS(compute.report.text, "the job asks for the reference kernels");
    CHECK(compute.kernels[0] == tdm_builtin_kernels[0]);
    tdm__compute_close(&compute, host);
}

TEST_MAIN(RUN(good_module_is_opened_and_told_the_calls); RUN(environment_names_the_folders);
          RUN(absent_module_is_a_list_of_folders); RUN(what_was_not_built_says_why); RUN(unusable_modules_say_why);
          RUN(damaged_file_gives_the_loader_s_sentence); RUN(long_paths_are_no_overrun);
          RUN(kernels_of_a_module_come_first);)
