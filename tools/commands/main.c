/* main.c - `tandem VERB ...`: the help, and the call of a verb. Each verb has a file of its own. */
#include "tools/terminal/log.h"
#include "tools/terminal/outlet.h"
#include "tools/launch/orders.h"
#include "tools/launch/stop.h"
#include "tools/terminal/term.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_overview(FILE *to) {
    term_print_folded(
        to, text_format("tandem %s - trains models described in YAML, on one device or on several as dp or ddp\n\n"
                        "usage: tandem VERB [CONFIG] [key.path=value ...] [flags]\n\n",
                        tdm_version()));
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) {
        FREED char *row = text_format("  %-8s  %s", (*verb)->name, (*verb)->summary), *folded = term_fold(row, to, 0);
        fprintf(to, "  %s%-8s%s%s", term_on(to, TERM_BOLD), (*verb)->name, term_off(to), folded + 2 + 8);
    }
    term_print_folded(to, text_copy("\nStart here:\n"
                                    "  tandem init --task toy-mp -o toy.yaml && tandem train toy.yaml\n\n"
                                    "`tandem VERB --help` explains a verb, `tandem explain KEY` a key of the file.\n"
                                    "`tandem help exit-codes` lists the exit codes, `tandem help env` the environment\n"
                                    "variables.\n"));
}

static void print_verb(const tool_verb *verb) {
    term_print_folded(stdout, text_format("usage: tandem %s%s%s [flags]\n\n%s\n\nflags:\n", verb->name,
                                          verb->synopsis[0] ? " " : "", verb->synopsis, verb->text));
    args_print_flags(verb);
}

static const tool_verb *find_verb(const char *name) {
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) {
        if (strcmp((*verb)->name, name) == 0) return *verb;
    }
    return strcmp(name, verb_manual.name) == 0 ? &verb_manual : NULL;
}

static int unknown_verb(const char *name) {
    const char *names[TOOL_VERBS_MAX + 2] = {"help", "--version"};
    int count = 2;
    for (const tool_verb *const *verb = tool_verbs; *verb; verb++) names[count++] = (*verb)->name;
    if (text_ends(name, ".yaml") || text_ends(name, ".yml")) {
        term_error("there is no verb `%s`; did you mean `tandem train %s`?", name, name);
        return TDM_E_USAGE;
    }
    const char *near = tdm_text_nearest(name, names, count);
    term_error("there is no verb `%s`; %s%s%s", name,
               near ? "did you mean `tandem " : "`tandem --help` lists the verbs", near ? near : "", near ? "`?" : "");
    return TDM_E_USAGE;
}

static int help(int argc, char **argv) {
    if (argc < 3) {
        print_overview(stdout);
        return TDM_OK;
    }
    for (const tool_part *topic = tool_topics; topic->name; topic++) {
        if (strcmp(argv[2], topic->name) == 0) return topic->run(NULL);
    }
    const tool_verb *verb = find_verb(argv[2]);
    if (!verb) return unknown_verb(argv[2]);
    print_verb(verb);
    return TDM_OK;
}

/* The reader of stdout has closed its end: `| head`, or a closed terminal. */
static bool reader_has_gone(void) {
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/* Results that could not be written are lost, on a full disk or because the reader is gone. That is a failure, unless
 * they are also in files. */
static int finish_output(int code, bool is_kept) {
    if (outlet_flush(is_kept)) return code;
    bool is_held_up = errno == ETIMEDOUT, has_gone = reader_has_gone();
    if (!has_gone) {
        term_mark(is_kept ? TERM_YELLOW : TERM_RED, "", is_kept ? "tandem: warning:" : "tandem: error:", "%s",
                  is_held_up ? "nobody reads standard output" : "standard output could not be written");
    }
    if (code != TDM_OK || is_kept) return code;
    if (is_held_up && stop_signal() != 0) return 128 + stop_signal();
    return has_gone ? 128 + SIGPIPE : TDM_E_IO;
}

/* Repairs what the caller may have changed: opens closed standard streams, because the first files opened would get
 * their numbers, and restores SIGCHLD. A file size limit and a closed pipe must be errors, not signals. */
static void prepare_process(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", O_RDWR) != fd) _exit(TDM_E_INTERNAL);
    }
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static void log_left_out(void) {
    long count = term_left_out();
    if (count > 0) log_note("%ld line%s dropped from stderr: nobody read it", count, count == 1 ? "" : "s");
}

int main(int argc, char **argv) {
    prepare_process();
    outlet_open();
    json_set_alloc_funcs(memory_take, free);
    const char *name = argc > 1 ? argv[1] : "";
    if (!name[0]) {
        print_overview(stderr);
        return TDM_E_USAGE;
    }
    if (strcmp(name, "--ended") == 0) return stop_ended(argc, argv);
    if (strcmp(name, "--version") == 0) {
        printf("tandem %s\n", tdm_version());
        return finish_output(TDM_OK, false);
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        return finish_output(help(argc, argv), false);
    }
    launch_orders *orders = NULL;
    if (strcmp(name, "--hosted") == 0) {
        if (argc > 2 && strcmp(argv[2], "--greet") == 0) fprintf(stderr, ORDERS_GREETING "%s\n", tdm_version());
        const int refused = orders_receive(&orders);
        if (refused != TDM_OK) return refused;
        argc = orders->argc;
        argv = orders->argv;
        name = argv[1];
    }
    const tool_verb *verb = find_verb(name);
    if (!verb) return unknown_verb(name);
    tool t = {.verb = verb, .argc = argc, .argv = argv, .orders = orders};
    int code = args_parse(&t);
    if (code == TDM_OK && t.help) {
        print_verb(verb);
    } else if (code == TDM_OK) {
        log_init(&t);
        code = verb->run(&t);
        log_left_out();
        log_close();
    }
    free(t.override);
    free(t.input);
    free(t.word);
    free(t.init_method);
    orders_free(t.orders);
    return finish_output(code, t.is_kept);
}
