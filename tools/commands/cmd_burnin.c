/* cmd_burnin.c - `tandem burnin`: refused with code 11 whatever the arguments are, since no release has it yet. */
#include "tools/terminal/term.h"

static int run(tool *t) {
    (void)t;
    term_error("burnin is not in this build; `tandem doctor` looks at each device, `tandem bench step CONFIG` runs a "
               "model on it");
    return TDM_E_UNSUPPORTED;
}

const tool_verb verb_burnin = {"burnin",
                               "CONFIG [key.path=value ...]",
                               "runs a model over a folder of images on each device, with verdicts",
                               "Runs a model over a folder of images on every device and compares the results.\n"
                               "Not in this build: exits with code 11. `tandem doctor` looks at each device,\n"
                               "`tandem bench step CONFIG` runs a model on it.",
                               {{"--duration", "TIME", "how long"}, {"--iterations", "N", "how many passes"}},
                               run,
                               {0, 1, true}};
