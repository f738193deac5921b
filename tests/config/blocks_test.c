/* Blocks of layers: what they become, faults of their uses, limits. Faults of their layers: bad/blocks*.yaml. */
#include "runtime/graph/graph.h"
#include "tests/config/config_support.h"

#define HEAD "tandem: 1\ntrain: {steps: 2, batch: {per_device: 2}}\nmodel:\n  input: 4\n"
#define TAIL "    - linear: 3\n"
#define ONE                                                                                  \
    HEAD "  blocks:\n    fc:\n      params: {out, bias: true, wide: false}\n      layers:\n" \
         "        - linear: {name: l, out: $out, bias: $bias}\n        - relu: {when: \"${wide}\"}\n  layers:\n"
#define RESIDUAL                                                                                                       \
    HEAD "  blocks:\n    res:\n      params: {out, project: false}\n      layers:\n"                                   \
         "        - linear: {name: fc, out: $out}\n        - relu: {id: main}\n"                                       \
         "        - linear: {name: skip.0, input: input, out: $out, when: $project}\n"                                 \
         "        - relu: {id: skip, when: $project}\n        - add: {input: [main, skip]}\n"                          \
         "    two:\n      params: {n: 2}\n      layers:\n"                                                             \
         "        - block: {use: res, name: a, out: 6, project: true, id: mid}\n"                                      \
         "        - block: {use: res, name: b, out: 6, repeat: $n, id: b_end}\n        - add: {input: [b_end, mid]}\n" \
         "  layers:\n"

/* The resolved form of a good text. To be freed with tdm_free. */
static char *layers_of(const char *text) {
    tdm_status status;
    char *out = NULL;
    tdm_config *config = checked(text, &status);
    CHECK_OK(status);
    if (status == TDM_OK) CHECK_OK(tdm_config_print(config, TDM_CONFIG_RESOLVED, &out));
    tdm_config_free(config);
    return out;
}

TEST(parameters) {
    char *layers = layers_of(ONE "    - block: {use: fc, name: a, out: 5, repeat: 2, first: {bias: false}}\n"
                                 "    - block: {use: fc, name: b, out: 6, wide: true}\n" TAIL);
    CHECK_HAS(layers, "linear: {name: a.0.l, out: 5, bias: false");
    CHECK_HAS(layers, "linear: {name: a.1.l, out: 5, bias: true");
    CHECK_HAS(layers, "linear: {name: b.l, out: 6, bias: true");
    CHECK(layers != NULL && strstr(layers, "- relu\n") == strstr(layers, "- relu")); /* one of three */
    tdm_free(layers);
}

/* The input of a block, layers that are left out, and blocks in blocks. */
TEST(residual) {
    char *layers = layers_of(RESIDUAL "    - block: {use: two, name: t, id: t}\n    - relu: {input: t}\n" TAIL);
    CHECK_HAS(layers, "linear: {name: t.a.fc, out: 6");
    CHECK_HAS(layers, "linear: {name: t.a.skip.0, input: [input], out: 6");
    CHECK_HAS(layers, "add: {id: t.mid, input: [t.a.main, t.a.skip]}");
    CHECK_HAS(layers, "add: {id: t.b.0, input: [t.b.0.main, t.mid]}");
    CHECK_HAS(layers, "add: {id: t.b_end, input: [t.b.1.main, t.b.0]}");
    CHECK_HAS(layers, "add: {id: t, input: [t.b_end, t.mid]}");
    CHECK_HAS(layers, "relu: {input: [t]}");
    tdm_free(layers);
}

TEST(faults_of_uses) {
    CHECK_ONE_FAULT(ONE "    - block: fc\n" TAIL, "C008", "a block needs the key `use`");
    CHECK_ONE_FAULT(ONE "    - block: {use: fd, name: a}\n" TAIL, "C013", "did you mean `fc`?");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, out: 3}\n" TAIL, "C008", "a block needs a `name`");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a}\n" TAIL, "C008", "must give `out`, which has no default");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, bais: 1}\n" TAIL, "C006", "did you mean `bias`?");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: {a: 1}}\n" TAIL, "C007", "got a mapping");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, repeat: 0}\n" TAIL, "C007", "repeat must be");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, first: 2}\n" TAIL, "C007", "first must be a mapping");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, first: {name: b}}\n" TAIL, "C006",
                    "block 'fc' has no parameter 'name'");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, wide: yes}\n" TAIL, "C007",
                    "`when` must be true or false, got 'yes' (block 'fc', line 10)");
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, input: b}\n" TAIL, "C013",
                    "no layer above has the id 'b'");
    CHECK_ONE_FAULT(ONE TAIL, "C013", "nothing uses the block 'fc'");
    CHECK_ONE_FAULT(RESIDUAL "    - block: {use: two, name: t, n: x}\n" TAIL, "C007", "repeat must be a whole number");
}

TEST(recursion) {
    CHECK_ONE_FAULT(HEAD "  blocks: {a: {layers: [{block: {use: a, name: b}}]}}\n  layers:\n"
                         "    - block: {use: a, name: a}\n" TAIL,
                    "C013", "block 'a' uses itself (block 'a', used on line 7)");
    CHECK_ONE_FAULT(HEAD "  blocks: {a: {layers: [{block: {use: b, name: b}}]}, b: {layers: [relu]}}\n  layers:\n"
                         "    - block: {use: a, name: a}\n" TAIL,
                    "C013", "block 'b' comes later");
}

/* 10 blocks that use each other 9 times would be 3 billion layers, even if `when` leaves all of them out. */
TEST(limits) {
    static const char *const last[] = {"[relu]", "[{relu: {when: false}}]"};
    for (int k = 0; k < 2; k++) {
        char text[2000];
        int used = snprintf(text, sizeof(text), HEAD "  blocks:\n    b0: {layers: %s}\n", last[k]);
        for (int i = 1; i < 10; i++)
            used += snprintf(text + used, sizeof(text) - (size_t)used,
                             "    b%d: {layers: [{block: {use: b%d, name: a, repeat: 9}}]}\n", i, i - 1);
        snprintf(text + used, sizeof(text) - (size_t)used, "  layers:\n    - block: {use: b9, name: a}\n" TAIL);
        CHECK_ONE_FAULT(text, "C003", "the model has more than 2048 layers or 8,192 values");
    }
    CHECK_ONE_FAULT(ONE "    - block: {use: fc, name: a, out: 3, repeat: 2048}\n" TAIL, "C003",
                    "more than 2048 layers");
}

/* The output of the model would not be that of its last layer. */
TEST(left_out_at_the_end) {
    CHECK_ONE_FAULT(HEAD "  blocks: {a: {layers: [{linear: 3}, {relu: {input: input, when: false}}]}}\n  layers:\n"
                         "    - block: {use: a, name: a}\n",
                    "C013", "the model's output must be the output of its last layer");
}

TEST_MAIN({
    RUN(parameters);
    RUN(residual);
    RUN(faults_of_uses);
    RUN(recursion);
    RUN(limits);
    RUN(left_out_at_the_end);
})
