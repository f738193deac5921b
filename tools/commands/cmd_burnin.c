/* cmd_burnin.c - `tandem burnin`: a stub. The verb needs image folders, which this build cannot read. */
#include "tools/terminal/term.h"

static int run(tool *t) {
    (void)t;
    term_error("burnin is not in this build: it needs a folder of images, and this build has no image codec");
    return TDM_E_UNSUPPORTED;
}

const tool_verb verb_burnin = {"burnin",
                               "CONFIG [key.path=value ...]",
                               "runs a model over a folder of images on each device, with verdicts",
                               "Runs a model over a folder of images on every device and compares the results.\n"
                               "Not in this build, which cannot read images: exits with code 11.",
                               {{"--duration", "TIME", "how long"}, {"--iterations", "N", "how many passes"}},
                               1,
                               1,
                               true,
                               run};
