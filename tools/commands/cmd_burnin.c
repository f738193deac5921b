/* cmd_burnin.c - `tandem burnin`: the verb's place; it needs image folders, which this build cannot read. */
#include "tools/terminal/term.h"

static int run(tool *t) {
    (void)t;
    term_error("burnin is not in this build: it wants a folder of images, and no image codec is built in");
    return TDM_E_UNSUPPORTED;
}

const tool_verb verb_burnin = {"burnin",
                               "CONFIG [key.path=value ...]",
                               "a model on every device over a folder of images, a verdict for each",
                               "Runs a model over a folder of images on every device and compares what comes\n"
                               "out.\n"
                               "Not in this build, which reads no images: exit status 11.",
                               {{"--duration", "TIME", "how long"}, {"--iterations", "N", "how many passes"}},
                               1,
                               1,
                               true,
                               run};
