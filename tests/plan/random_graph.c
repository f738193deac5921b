/* See random_graph.h. A graph is written as text first, so that a failure can show it. */
#include "tests/plan/random_graph.h"

enum {
    MAX_LAYERS = 128,
    CHANNELS = 8,
    SIDE = 6,
    MOST_CHANNELS = 2 * CHANNELS, /* for which weights have room that random_offers widens */
    MOST_FEATURES = 512           /* of a row that concat makes */
};

typedef struct {
    tdm_text text;
    int64_t channels[MAX_LAYERS], side[MAX_LAYERS]; /* of a value; side 0: a row of `channels` features; of a series its
                                                       second dimension */
    int readers[MAX_LAYERS];
    int count;
    uint64_t *state;
    random_kind kind;
} maker;

/* ---- layers ---- */

static bool has_all(const maker *m) {
    return m->kind == RANDOM_ALL || m->kind == RANDOM_INPUTS;
}

/* Most of the time a late value, so that graphs are deep. */
static int draw_value(const maker *m) {
    const int last = m->count - 1;
    return draw_chance(m->state, 65) ? last : draw(m->state, m->count);
}

/* Another value of that shape; the same where there is none. */
static int draw_twin(const maker *m, int value) {
    const int start = draw(m->state, m->count);
    for (int i = 0; i < m->count; i++) {
        const int other = (start + i) % m->count;
        if (other != value && m->side[other] == m->side[value] && m->channels[other] == m->channels[value])
            return other;
    }
    return value;
}

static void add_layer(maker *m, const char *op, const int *input, int inputs, const char *attrs, int64_t channels,
                      int64_t side) {
    tdm__text_printf(&m->text, "; v%d %s", m->count, op);
    for (int i = 0; i < inputs; i++) {
        tdm__text_printf(&m->text, " v%d", input[i]);
        m->readers[input[i]]++;
    }
    tdm__text_printf(&m->text, " %s", attrs);
    m->channels[m->count] = channels;
    m->side[m->count++] = side;
}

static void add_convolution(maker *m, int x) {
    char attrs[64];
    const bool wide = draw_chance(m->state, 50);
    const int64_t out = draw_chance(m->state, 70) ? CHANNELS : 2 * CHANNELS;
    snprintf(attrs, sizeof(attrs), "out=%d kernel=%d padding=%d bias=%s", (int)out, wide ? 3 : 1, wide ? 1 : 0,
             draw_chance(m->state, 75) ? "true" : "false");
    add_layer(m, "conv2d", &x, 1, attrs, out, m->side[x]);
}

static void add_sum(maker *m, int x) {
    const int inputs = draw_chance(m->state, 15) ? 3 : 2, at = draw(m->state, inputs);
    int input[3];
    for (int i = 0; i < inputs; i++) input[i] = i == at ? x : draw_twin(m, x);
    add_layer(m, "add", input, inputs, "", m->channels[x], m->side[x]);
}

/* With another value that is as high and wide, or with itself; a value that would be too wide stays as it is. */
static void add_concat(maker *m, int x) {
    const int64_t most = m->side[x] > 0 ? MOST_CHANNELS : MOST_FEATURES;
    int other = draw(m->state, m->count);
    if (m->side[other] != m->side[x]) other = x;
    const int input[2] = {x, other};
    const int64_t channels = m->channels[x] + m->channels[other];
    if (channels <= most)
        add_layer(m, "concat", input, 2, "", channels, m->side[x]);
    else
        add_layer(m, "identity", &x, 1, "", m->channels[x], m->side[x]);
}

/* Channels stay even, for groupnorm. */
static void add_slice(maker *m, int x) {
    char attrs[48];
    const int64_t channels = m->channels[x], start = channels / 4,
                  end = draw_chance(m->state, 50) ? channels : 2 * start;
    snprintf(attrs, sizeof(attrs), "start=%d end=%d", (int)start, (int)end);
    if (channels >= CHANNELS)
        add_layer(m, "slice", &x, 1, attrs, end - start, m->side[x]);
    else
        add_layer(m, "identity", &x, 1, "", channels, m->side[x]);
}

static void add_upsample(maker *m, int x) {
    char attrs[48];
    const int64_t side = 2 * m->side[x] <= SIDE ? 2 * m->side[x] : 4;
    snprintf(attrs, sizeof(attrs), "size=%d mode=%s", (int)side, draw_chance(m->state, 50) ? "nearest" : "bilinear");
    add_layer(m, "upsample", &x, 1, attrs, m->channels[x], side);
}

static void add_pooling(maker *m, int x) {
    static const char *const ops[] = {"maxpool2d", "maxpool2d", "avgpool2d", "adaptive_avgpool2d",
                                      "adaptive_maxpool2d"};
    const char *op = ops[draw(m->state, 5)];
    char attrs[48];
    if (strncmp(op, "adaptive", 8) == 0) {
        add_layer(m, op, &x, 1, "out=2", m->channels[x], 2);
        return;
    }
    const bool halves = m->side[x] >= 4 && draw_chance(m->state, 40);
    snprintf(attrs, sizeof(attrs), halves ? "kernel=2" : "kernel=3 stride=1 padding=1");
    add_layer(m, op, &x, 1, attrs, m->channels[x], halves ? m->side[x] / 2 : m->side[x]);
}

static void add_flat(maker *m, int x) {
    const int64_t side = m->side[x] > 0 ? m->side[x] : 1, area = m->kind == RANDOM_SERIES ? side : side * side;
    add_layer(m, "flatten", &x, 1, "", m->channels[x] * area, 0);
}

/* One that reads x, two that read y, one that is no kernel. */
static const char *draw_activation(maker *m) {
    static const char *const ops[] = {"gelu", "tanh", "leaky_relu", "identity"};
    return ops[draw(m->state, 4)];
}

static void add_rarer_layer(maker *m, int x) {
    const int what = draw(m->state, 5);
    if (what == 0)
        add_layer(m, "groupnorm", &x, 1, "groups=2", m->channels[x], m->side[x]);
    else if (what == 1)
        add_concat(m, x);
    else if (what == 2)
        add_slice(m, x);
    else if (what == 3)
        add_upsample(m, x);
    else
        add_layer(m, "dropout2d", &x, 1, "p=0.3", m->channels[x], m->side[x]);
}

static void add_image_layer(maker *m, int x) {
    const int what = draw(m->state, has_all(m) ? 115 : 70);
    if (what < 20)
        add_convolution(m, x);
    else if (what < 35)
        add_layer(m, "batchnorm2d", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 52)
        add_sum(m, x);
    else if (what < 70 && m->kind != RANDOM_SMOOTH)
        add_layer(m, "relu", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 70)
        add_layer(m, "batchnorm2d", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 85)
        add_pooling(m, x);
    else if (what < 89)
        add_layer(m, "dropout", &x, 1, "p=0.3", m->channels[x], m->side[x]);
    else if (what < 93)
        add_layer(m, draw_activation(m), &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 100)
        add_flat(m, x);
    else
        add_rarer_layer(m, x);
}

static void add_recurrent(maker *m, int x) {
    const char *op = draw_chance(m->state, 50) ? "lstm" : "gru";
    const int layers = draw_chance(m->state, 25) ? 2 : 1;
    char attrs[64];
    const bool all = draw_chance(m->state, 50);
    snprintf(attrs, sizeof(attrs), "hidden=%d layers=%d outputs=%s", CHANNELS, layers, all ? "all" : "last");
    add_layer(m, op, &x, 1, attrs, all ? m->channels[x] : CHANNELS, all ? CHANNELS : 0);
}

static void add_series_pooling(maker *m, int x) {
    const bool halves = m->side[x] >= 4 && draw_chance(m->state, 40);
    if (draw_chance(m->state, 30))
        add_layer(m, "adaptive_avgpool1d", &x, 1, "out=2", m->channels[x], 2);
    else
        add_layer(m, "maxpool1d", &x, 1, halves ? "kernel=2" : "kernel=3 stride=1 padding=1", m->channels[x],
                  halves ? m->side[x] / 2 : m->side[x]);
}

static void add_series_layer(maker *m, int x) {
    const int what = draw(m->state, 100);
    if (what < 18)
        add_layer(m, "conv1d", &x, 1, "out=8 kernel=3 padding=1", CHANNELS, m->side[x]);
    else if (what < 28)
        add_recurrent(m, x);
    else if (what < 36)
        add_layer(m, "batchnorm1d", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 50)
        add_sum(m, x);
    else if (what < 58)
        add_layer(m, "relu", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 66)
        add_series_pooling(m, x);
    else if (what < 72)
        add_layer(m, "transpose", &x, 1, "", m->side[x], m->channels[x]);
    else if (what < 78)
        add_layer(m, "linear", &x, 1, "out=6", m->channels[x], SIDE);
    else if (what < 82 && m->side[x] >= 4)
        add_layer(m, "layernorm", &x, 1, "", m->channels[x], m->side[x]);
    else if (what < 86)
        add_concat(m, x);
    else if (what < 90)
        add_slice(m, x);
    else if (what < 94)
        add_layer(m, draw_activation(m), &x, 1, "", m->channels[x], m->side[x]);
    else
        add_flat(m, x);
}

static void add_row_layer(maker *m, int x) {
    const int what = draw(m->state, 115);
    if (what < 40)
        add_layer(m, "linear", &x, 1, "out=8", CHANNELS, 0);
    else if (what < 60)
        add_layer(m, "relu", &x, 1, "", m->channels[x], 0);
    else if (what < 68)
        add_layer(m, "dropout", &x, 1, "p=0.3", m->channels[x], 0);
    else if (what < 72)
        add_layer(m, draw_activation(m), &x, 1, "", m->channels[x], 0);
    else if (what < 78)
        add_layer(m, "batchnorm1d", &x, 1, "", m->channels[x], 0);
    else if (what < 85)
        add_flat(m, x);
    else if (what < 100)
        add_sum(m, x);
    else if (what < 105)
        add_layer(m, "layernorm", &x, 1, "", m->channels[x], 0);
    else if (what < 110)
        add_concat(m, x);
    else
        add_slice(m, x);
}

/* The end of a residual block in one go, which single draws seldom make; now and then with a node that reads what is
 * added, in between or behind, with a norm that reads it, or with a third that is added. */
static void add_block(maker *m, int x) {
    char attrs[48];
    int last = x;
    snprintf(attrs, sizeof(attrs), "out=%d kernel=3 padding=1", (int)m->channels[x]);
    if (draw_chance(m->state, 65)) {
        add_layer(m, "conv2d", &last, 1, attrs, m->channels[x], m->side[x]);
        last = m->count - 1;
    }
    add_layer(m, "batchnorm2d", &last, 1, "", m->channels[x], m->side[x]);
    last = m->count - 1;
    if (draw_chance(m->state, 20)) add_convolution(m, x);
    const bool swapped = draw_chance(m->state, 50);
    const int added[3] = {swapped ? x : last, swapped ? last : x, draw_twin(m, x)};
    add_layer(m, "add", added, draw_chance(m->state, 15) ? 3 : 2, "", m->channels[x], m->side[x]);
    last = m->count - 1;
    if (m->kind != RANDOM_SMOOTH) add_layer(m, "relu", &last, 1, "", m->channels[x], m->side[x]);
    if (draw_chance(m->state, 30)) add_convolution(m, x);
}

static void add_stem(maker *m, int x) {
    add_convolution(m, x);
    int last = m->count - 1;
    if (draw_chance(m->state, 50)) {
        add_layer(m, "relu", &last, 1, "", m->channels[last], m->side[last]);
        last = m->count - 1;
    }
    add_layer(m, "maxpool2d", &last, 1, "kernel=3 stride=1 padding=1", m->channels[last], m->side[last]);
}

/* ---- the graph ---- */

/* All that nobody reads becomes a row of 8 features, and their sum the output. */
static void join_ends(maker *m) {
    int end[TDM_MAX_INPUTS], ends = 0;
    const int drawn = m->count;
    for (int i = drawn - 1; i >= 0; i--) {
        if (m->readers[i] > 0) continue;
        int x = i;
        if (m->side[x] > 0) add_flat(m, x), x = m->count - 1;
        add_layer(m, "linear", &x, 1, "out=8", CHANNELS, 0);
        end[ends++] = m->count - 1;
        if (ends < TDM_MAX_INPUTS) continue;
        add_layer(m, "add", end, ends, "", CHANNELS, 0);
        end[0] = m->count - 1, ends = 1;
    }
    if (ends > 1) add_layer(m, "add", end, ends, "", CHANNELS, 0);
}

tdm_graph *random_graph(random_kind kind, int layers, uint64_t *state) {
    maker m = {.state = state, .kind = kind, .count = 1, .channels = {CHANNELS}, .side = {SIDE}};
    tdm__text_init(&m.text, tdm_host_default());
    tdm__text_puts(&m.text, kind == RANDOM_SERIES ? "v0 8x6" : "v0 8x6x6");
    if (kind == RANDOM_INPUTS) {
        tdm__text_puts(&m.text, " v1 8x6x6 v2 8");
        m.count = 3, m.channels[1] = m.channels[2] = CHANNELS, m.side[1] = SIDE;
    }
    while (m.count <= layers) {
        const int x = draw_value(&m);
        if (m.side[x] == 0)
            add_row_layer(&m, x);
        else if (kind == RANDOM_SERIES)
            add_series_layer(&m, x);
        else if (draw_chance(state, 12) && m.count + 4 <= layers)
            add_block(&m, x);
        else if (has_all(&m) && draw_chance(state, 15))
            add_stem(&m, x);
        else
            add_image_layer(&m, x);
    }
    join_ends(&m);
    tdm_graph *graph = plan_graph(m.text.data);
    if (graph == NULL) fprintf(stderr, "  the graph: %s\n", m.text.data);
    tdm__text_deinit(&m.text);
    return graph;
}

/* ---- what is frozen ---- */

void random_freeze(tdm_texts *out, const tdm_graph *graph, uint64_t *state) {
    enum { NONE, FIRST, LAYERS, SINGLE } how = (unsigned)draw(state, 4);
    const int params = (int)graph->param_count, first = draw(state, params);
    bool frozen = false;
    out->count = 0;
    for (int i = 0; how != NONE && i < params && out->count < TDM_LIST_MAX && out->count + 1 < params; i++) {
        const bool same_layer = i > 0 && graph->params[i].node == graph->params[i - 1].node;
        if (how == FIRST) frozen = i < first;
        if (how == SINGLE || (how == LAYERS && !same_layer)) frozen = draw_chance(state, 40);
        if (frozen) out->item[out->count++] = graph->params[i].name;
    }
}

/* ---- kernels ---- */

void random_offers(char *out, size_t bytes, uint64_t *state) {
    static const char *const layouts[] = {"", "keep", "keep", "nhwc", "c8"};
    static const char *const words[] = {"relu",  "bias",     "sum",        "add relu", "gives",
                                        "turns", "saved=24", "scratch=40", "again"};
    const bool agree = draw_chance(state, 60); /* so that not all are kept apart by reorders */
    size_t used = 0;
    out[0] = '\0';
    for (const tdm_kernel *const *k = tdm_builtin_kernels; *k != NULL; k++) {
        used += (size_t)snprintf(out + used, bytes - used, "%s: statistics %s", (*k)->op,
                                 agree ? "keep" : layouts[draw(state, 5)]);
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (draw_chance(state, 40)) used += (size_t)snprintf(out + used, bytes - used, " %s", words[i]);
        if (strcmp((*k)->op, "conv2d") == 0 && draw_chance(state, 50))
            used += (size_t)snprintf(out + used, bytes - used, " fill=16 weights=16");
        used += (size_t)snprintf(out + used, bytes - used, "; ");
    }
}
