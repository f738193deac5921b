/* Replaces uses of blocks by the blocks' layers. What it makes is bounded by what a file may hold: TDM_YAML_MAX_EVENTS
 * values, counted before each is made, so that blocks within blocks cannot grow without end. */
#include <string.h>

#include "config/blocks/blocks.h"
#include "runtime/base/status.h"

/* Values that are not the output of config->expanded[...]; FIRST_INPUT - k is input k of model.inputs. */
enum { MODEL_INPUT = -1, UNKNOWN = -2, FIRST_INPUT = -3, LEAST_VALUE = FIRST_INPUT - TDM_SHAPES_MAX };

typedef struct expansion {
    tdm_config *config;
    tdm_block *block;
    int block_count;
    int values;    /* made so far */
    int current;   /* the output that a layer without `input` takes */
    tdm_names ids; /* to values, from LEAST_VALUE on */
} expansion;

/* One use of a block, or model.layers. */
typedef struct scope {
    tdm_block *block;   /* NULL: model.layers */
    int usable;         /* how many blocks it may use: those above it */
    const char *prefix; /* of names and ids, such as "layer1.0." */
    int input;          /* the value that `input` means */
    tdm_position use_at;
    const tdm_yaml_node *argument[TDM_BLOCK_PARAMS_MAX];
} scope;

void tdm__expanded_enter(tdm_config *config, const tdm_expanded *expanded) {
    config->faults.within = expanded != NULL ? expanded->within : (tdm_fault_block){0};
}

/* Counts values before they are made. False if there are too many: reading ends. */
static bool spend(expansion *e, const tdm_yaml_node *item, int count) {
    tdm_config *config = e->config;
    e->values += count;
    if (e->values <= TDM_YAML_MAX_EVENTS && config->expanded_count < TDM_LAYERS_MAX) return true;
    if (e->values - count <= TDM_YAML_MAX_EVENTS)
        TDM_FAULT(config, LIMIT, item->at, "model.layers", "",
                  "with its blocks written out, the model has more than %d layers or 8,192 values", TDM_LAYERS_MAX);
    e->values = TDM_YAML_MAX_EVENTS + count + 1; /* the fault is reported once */
    config->has_block_fault = true;
    return false;
}

/* ---- ids ---- */

static const char *full_name(expansion *e, const scope *s, const char *name) {
    /* A name that is too long anyway stays as it is: layers/layer.c refuses it. */
    if (s->prefix[0] == '\0' || strlen(name) > TDM_BLOCK_NAME_MAX) return name;
    return TDM_WORDS(e->config, "%s%s", s->prefix, name);
}

/* The id of a value; one that has none gets one. */
static const char *id_of(expansion *e, int value) {
    const tdm_shapes *inputs = &e->config->settings.model.inputs;
    if (value <= FIRST_INPUT) return inputs->item[FIRST_INPUT - value].name;
    if (value == MODEL_INPUT) return inputs->count == 1 ? inputs->item[0].name : "input";
    tdm_expanded *expanded = &e->config->expanded[value];
    if (expanded->id == NULL)
        expanded->id = expanded->ends != NULL ? expanded->ends : TDM_WORDS(e->config, "output.%d", value);
    return expanded->id;
}

static int value_of(expansion *e, const scope *s, const char *id) {
    if (strcmp(id, "input") == 0) return s->input;
    const int number = tdm__names_find(&e->ids, full_name(e, s, id));
    if (number >= 0) return number + LEAST_VALUE;
    /* Blocks know what they take as `input` alone. */
    const int input = s->block == NULL ? tdm__inputs_find(e->config, id) : -1;
    return input >= 0 ? FIRST_INPUT - input : UNKNOWN;
}

/* `id` is another name of the value. A second layer of the same id is refused in model.c. */
static tdm_status bind(expansion *e, const scope *s, const tdm_yaml_node *id, int value) {
    if (id == NULL || id->kind != TDM_YAML_SCALAR || value == UNKNOWN) return TDM_OK;
    const char *full = full_name(e, s, id->text);
    if (tdm__names_find(&e->ids, full) < 0) return tdm__names_add(&e->ids, &e->config->work, full, value - LEAST_VALUE);
    return TDM_OK;
}

/* The one value that a use, or a layer left out, takes: `input`, or the output before it. */
static int single_input(expansion *e, const scope *s, const tdm_yaml_node *keys, const char *what) {
    tdm_config *config = e->config;
    const tdm_yaml_node *input = tdm__yaml_find(keys, "input");
    if (input == NULL || tdm__yaml_is_null(input)) return e->current;
    if (input->kind == TDM_YAML_LIST && input->count == 1) input = input->first;
    const int value = input->kind == TDM_YAML_SCALAR ? value_of(e, s, input->text) : UNKNOWN;
    if (value != UNKNOWN) return value;
    config->has_block_fault = true;
    if (input->kind == TDM_YAML_SCALAR)
        TDM_FAULT(config, REFERENCE, input->at, "input",
                  config->settings.model.inputs.count > 0 && s->block == NULL
                      ? TDM_WORDS(config, "write the id of a layer above, or one of the model's inputs: %s",
                                  tdm__inputs_list(config))
                      : "write the id of a layer above, or `input`",
                  "no layer above has the id '%.200s'", input->text);
    else
        TDM_FAULT(config, VALUE, input->at, "input", "write `input: a`", "%s must have one input, not a list", what);
    return e->current;
}

/* ---- copies ---- */

/* The value that stands for `node` here: that of the parameter that it names, or itself. */
static const tdm_yaml_node *replaced(const scope *s, const tdm_yaml_node *node) {
    const int index = tdm__block_param(s->block, node);
    return index >= 0 && s->argument[index] != NULL ? s->argument[index] : node;
}

/* A copy under `parent` (NULL: none) with parameters replaced. As deep as YAML may be. */
static tdm_status copy(expansion *e, const scope *s, const tdm_yaml_node *node, tdm_yaml_node *parent,
                       tdm_yaml_node **out) {
    tdm_yaml_node *made;
    *out = NULL;
    if (!spend(e, node, 1)) return TDM_OK;
    TDM_TRY(tdm__zone_new(&e->config->work, &made, 1, sizeof(*made)));
    *made = *replaced(s, node);
    const tdm_yaml_node *first = made->first;
    made->key = node->key;
    made->key_at = node->key_at;
    made->is_repeated = node->is_repeated;
    made->first = made->last = made->next = NULL;
    made->count = 0;
    for (const tdm_yaml_node *item = first; item != NULL; item = item->next) {
        tdm_yaml_node *member;
        TDM_TRY(copy(e, s, item, made, &member));
        if (member == NULL) return TDM_OK;
    }
    if (parent != NULL) tdm__yaml_append(parent, made);
    *out = made;
    return TDM_OK;
}

static void rename_inputs(expansion *e, const scope *s, tdm_yaml_node *input) {
    tdm_yaml_node *item = input->kind == TDM_YAML_LIST ? input->first : input;
    for (; item != NULL; item = input->kind == TDM_YAML_LIST ? item->next : NULL) {
        if (item->kind != TDM_YAML_SCALAR || tdm__yaml_is_null(item)) continue;
        const int value = value_of(e, s, item->text);
        item->text = value == UNKNOWN ? full_name(e, s, item->text) : id_of(e, value);
    }
}

/* ---- layers ---- */

static const tdm_yaml_node *keys_of(const tdm_yaml_node *item) {
    return item->kind == TDM_YAML_MAP && item->count == 1 && item->first->kind == TDM_YAML_MAP ? item->first : NULL;
}

/* False if `when` says so. */
static bool is_wanted(expansion *e, const scope *s, const tdm_yaml_node *keys) {
    const tdm_yaml_node *node = s->block != NULL ? tdm__yaml_find(keys, "when") : NULL;
    if (node == NULL) return true;
    node = replaced(s, node);
    if (node->kind == TDM_YAML_SCALAR && strcmp(node->text, "true") == 0) return true;
    if (node->kind == TDM_YAML_SCALAR && strcmp(node->text, "false") == 0) return false;
    e->config->has_block_fault = true;
    TDM_FAULT(e->config, VALUE, node->at, "when", "write `when: $name` with a parameter that is true or false",
              "`when` must be true or false, got %s", tdm__yaml_words(&e->config->faults, node));
    return true;
}

static tdm_status expand_layer(expansion *e, const scope *s, const tdm_yaml_node *item) {
    tdm_config *config = e->config;
    const tdm_yaml_node *keys = keys_of(item), *id = tdm__yaml_find(keys, "id");
    tdm_yaml_node *made;
    if (!is_wanted(e, s, keys)) {
        e->current = single_input(e, s, keys, "a layer that `when` leaves out");
        return bind(e, s, id, e->current);
    }
    TDM_TRY(copy(e, s, item, NULL, &made));
    if (made == NULL) return TDM_OK;
    const int index = config->expanded_count++;
    tdm_expanded *expanded = &config->expanded[index];
    *expanded = (tdm_expanded){.item = made, .within = config->faults.within};
    tdm_yaml_node *inner = made->kind == TDM_YAML_MAP ? made->first : NULL, *last = NULL;
    bool has_input = false;
    for (tdm_yaml_node *node = inner != NULL ? inner->first : NULL; node != NULL; node = node->next) {
        const char *key = node->key != NULL ? node->key : "";
        const bool is_name = strcmp(key, "name") == 0, is_id = strcmp(key, "id") == 0;
        if ((is_name || is_id) && node->kind == TDM_YAML_SCALAR && !tdm__yaml_is_null(node))
            node->text = full_name(e, s, node->text);
        if (is_id && node->kind == TDM_YAML_SCALAR && !tdm__yaml_is_null(node)) expanded->id = node->text;
        if (strcmp(key, "input") == 0 && !tdm__yaml_is_null(node)) {
            has_input = true;
            rename_inputs(e, s, node);
        }
        if (s->block != NULL && strcmp(key, "when") == 0) { /* it is true */
            *(last != NULL ? &last->next : &inner->first) = node->next;
            inner->count--;
        } else {
            last = node;
        }
    }
    if (!has_input && e->current != index - 1) expanded->input = id_of(e, e->current);
    e->current = index;
    return bind(e, s, id, index);
}

/* ---- uses ---- */

static tdm_block *find_block(expansion *e, const scope *s, const tdm_yaml_node *keys, const tdm_yaml_node *item) {
    tdm_config *config = e->config;
    const tdm_yaml_node *use = tdm__yaml_find(keys, "use");
    const char *names[TDM_BLOCKS_MAX];
    if (use == NULL || use->kind != TDM_YAML_SCALAR) {
        TDM_FAULT(config, MISSING, item->at, "use", "write `- block: {use: basic, name: layer1}`",
                  "a block needs the key `use` with the name of one of model.blocks");
        return NULL;
    }
    for (int i = 0; i < e->block_count; i++) {
        names[i] = e->block[i].name;
        if (strcmp(names[i], use->text) != 0) continue;
        e->block[i].is_used = true;
        if (i < s->usable) return &e->block[i];
        TDM_FAULT(config, REFERENCE, use->at, "use", "a block uses only blocks above it",
                  i == s->usable ? "block '%s' uses itself" : "block '%s' comes later", use->text);
        return NULL;
    }
    const char *hint = tdm__hint_nearest(config, use->text, names, e->block_count);
    TDM_FAULT(config, REFERENCE, use->at, "use", hint[0] != '\0' ? hint : "describe it in model.blocks",
              "there is no block '%.60s'", use->text);
    return NULL;
}

static bool is_own_key(const char *key) {
    static const char *const keys[] = {"use", "name", "id", "input", "repeat", "first", "when"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(key, keys[i]) == 0) return true;
    }
    return strncmp(key, "x-", 2) == 0;
}

static void unknown_argument(tdm_config *config, const tdm_block *block, const tdm_yaml_node *node) {
    const char *names[TDM_BLOCK_PARAMS_MAX + 3] = {"repeat", "first", "when"};
    config->has_block_fault = true;
    if (tdm__fault_skip(&config->faults)) return;
    for (int i = 0; i < block->param_count; i++) names[3 + i] = block->param[i]->key;
    const char *hint = tdm__hint_nearest(config, node->key, names, 3 + block->param_count);
    if (hint[0] == '\0')
        hint =
            TDM_WORDS(config, "its parameters: %s", tdm__fault_list_of(&config->faults, names + 3, block->param_count));
    TDM_FAULT(config, UNKNOWN_KEY, node->key_at, node->key, hint, "block '%s' has no parameter '%.60s'", block->name,
              node->key);
}

/* Takes the parameters from `keys`: of a use, or of its `first`. */
static void take_arguments(expansion *e, const scope *outer, scope *s, const tdm_yaml_node *keys, bool is_first) {
    for (const tdm_yaml_node *node = keys->first; node != NULL; node = node->next) {
        int index = 0;
        if (node->is_repeated || (!is_first && is_own_key(node->key))) continue;
        while (index < s->block->param_count && strcmp(s->block->param[index]->key, node->key) != 0) index++;
        if (index == s->block->param_count) {
            unknown_argument(e->config, s->block, node);
        } else if (node->kind == TDM_YAML_MAP) {
            e->config->has_block_fault = true;
            TDM_FAULT(e->config, VALUE, node->at, node->key, "", "%s must be a value or a list, got a mapping",
                      node->key);
        } else {
            s->argument[index] = replaced(outer, node);
        }
    }
}

static bool check_arguments(expansion *e, const scope *s) {
    for (int i = 0; i < s->block->param_count; i++) {
        if (!tdm__yaml_is_null(s->argument[i])) continue;
        e->config->has_block_fault = true;
        TDM_FAULT(e->config, MISSING, s->use_at, s->block->param[i]->key, "",
                  "the use of block '%s' must give `%s`, which has no default", s->block->name,
                  s->block->param[i]->key);
        return false;
    }
    return true;
}

/* The number of times; 0 after a fault. */
static int64_t read_repeat(expansion *e, const scope *s, const tdm_yaml_node *keys) {
    const tdm_yaml_node *node = tdm__yaml_find(keys, "repeat");
    int64_t count;
    if (node == NULL) return 1;
    node = replaced(s, node);
    if (node->kind == TDM_YAML_SCALAR && tdm__parse_int(node->text, &count) && count >= 1 && count <= TDM_LAYERS_MAX)
        return count;
    TDM_FAULT(e->config, VALUE, node->at, "repeat", "", "repeat must be a whole number from 1 to %d, got %s",
              TDM_LAYERS_MAX, tdm__yaml_words(&e->config->faults, node));
    return 0;
}

/* "layer1." from `name: layer1`; NULL after a fault. */
static const char *read_name(expansion *e, const scope *s, const tdm_yaml_node *keys, tdm_position at) {
    const tdm_yaml_node *node = tdm__yaml_find(keys, "name");
    if (node == NULL || node->kind != TDM_YAML_SCALAR || tdm__yaml_is_null(node)) {
        TDM_FAULT(e->config, MISSING, at, "name", "write `- block: {use: basic, name: layer1}`",
                  "a block needs a `name`, the prefix of its layers' names");
        return NULL;
    }
    if (strlen(s->prefix) + strlen(node->text) <= TDM_BLOCK_NAME_MAX - 8)
        return TDM_WORDS(e->config, "%s%s.", s->prefix, node->text);
    TDM_FAULT(e->config, REFERENCE, node->at, "name", "", "the name of a block must have at most %d letters",
              TDM_BLOCK_NAME_MAX - 8);
    return NULL;
}

static tdm_status expand_items(expansion *e, const scope *s, const tdm_yaml_node *list);

static tdm_status expand_repeats(expansion *e, const scope *outer, const tdm_yaml_node *keys, scope *s) {
    tdm_config *config = e->config;
    const tdm_yaml_node *first = tdm__yaml_find(keys, "first"), *repeat = tdm__yaml_find(keys, "repeat");
    const char *prefix = read_name(e, outer, keys, s->use_at);
    const int64_t count = read_repeat(e, outer, keys);
    if (first != NULL && first->kind != TDM_YAML_MAP)
        TDM_FAULT(config, VALUE, first->at, "first", "write `first: {stride: 2}`",
                  "first must be a mapping of parameters, got %s", tdm__yaml_words(&config->faults, first));
    if (prefix == NULL || count == 0 || (first != NULL && first->kind != TDM_YAML_MAP)) {
        config->has_block_fault = true;
        return TDM_OK;
    }
    scope plain = *s;
    if (first != NULL) take_arguments(e, outer, s, first, true);
    for (int64_t k = 0; k < count && !config->has_block_fault; k++, *s = plain) {
        s->prefix = repeat != NULL ? TDM_WORDS(config, "%s%d.", prefix, (int)k) : prefix;
        s->input = e->current;
        if (!check_arguments(e, s)) break;
        TDM_TRY(expand_items(e, s, s->block->layers));
        if (e->current >= 0 && config->expanded[e->current].ends == NULL)
            config->expanded[e->current].ends = TDM_WORDS(config, "%.*s", (int)strlen(s->prefix) - 1, s->prefix);
    }
    return config->faults.status;
}

static tdm_status expand_use(expansion *e, const scope *outer, const tdm_yaml_node *item) {
    tdm_config *config = e->config;
    const tdm_yaml_node *keys = keys_of(item);
    scope s = {.use_at = item->first->key_at, .block = find_block(e, outer, keys, item)};
    if (s.block == NULL || !spend(e, item, 1 + s.block->param_count)) {
        config->has_block_fault = true;
        return config->faults.status;
    }
    s.usable = (int)(s.block - e->block);
    memcpy(s.argument, s.block->param, sizeof(s.argument));
    take_arguments(e, outer, &s, keys, false);
    e->current = single_input(e, outer, keys, "a block");
    if (is_wanted(e, outer, keys)) TDM_TRY(expand_repeats(e, outer, keys, &s));
    const tdm_yaml_node *id = tdm__yaml_find(keys, "id");
    if (id != NULL && id->kind == TDM_YAML_SCALAR && e->current >= 0 && config->expanded[e->current].id == NULL)
        config->expanded[e->current].id = full_name(e, outer, id->text);
    return bind(e, outer, id, e->current);
}

static tdm_status expand_items(expansion *e, const scope *s, const tdm_yaml_node *list) {
    tdm_config *config = e->config;
    const tdm_fault_block outside = config->faults.within;
    for (const tdm_yaml_node *item = list->first; item != NULL && !config->has_block_fault; item = item->next) {
        const bool is_use = item->kind == TDM_YAML_MAP && item->count == 1 && strcmp(item->first->key, "block") == 0;
        if (!spend(e, item, 1)) break;
        if (s->block != NULL) config->faults.within = (tdm_fault_block){s->block->name, item->at, s->use_at};
        TDM_TRY(is_use ? expand_use(e, s, item) : expand_layer(e, s, item));
    }
    config->faults.within = outside;
    return config->faults.status;
}

/* ---- the whole model ---- */

/* Without uses of blocks the items are taken as they are. */
static void take_all(tdm_config *config) {
    for (const tdm_yaml_node *item = config->layers_node->first; item != NULL; item = item->next)
        config->expanded[config->expanded_count++].item = item;
}

static void check_blocks(expansion *e) {
    for (int i = 0; i < e->block_count && !e->config->has_block_fault; i++) {
        if (e->block[i].is_used) continue;
        TDM_FAULT(e->config, REFERENCE, e->block[i].at, "model.blocks",
                  TDM_WORDS(e->config, "write `- block: {use: %s, name: ...}`, or remove it", e->block[i].name),
                  "nothing uses the block '%s'", e->block[i].name);
    }
}

tdm_status tdm__layers_expand(tdm_config *config) {
    const tdm_yaml_node *list = config->layers_node;
    expansion e = {.config = config, .current = MODEL_INPUT};
    bool has_uses = false;
    TDM_TRY(tdm__blocks_read(config, &e.block, &e.block_count));
    if (config->has_block_fault) return TDM_OK;
    for (const tdm_yaml_node *item = list->first; item != NULL; item = item->next)
        has_uses = has_uses || (item->kind == TDM_YAML_MAP && item->count == 1 && item->first->key != NULL &&
                                strcmp(item->first->key, "block") == 0);
    const int room = has_uses ? TDM_LAYERS_MAX : list->count;
    TDM_TRY(tdm__zone_new(&config->work, &config->expanded, (size_t)room, sizeof(tdm_expanded)));
    if (!has_uses) {
        take_all(config);
        check_blocks(&e);
        return config->faults.status;
    }
    const scope model = {.usable = e.block_count, .prefix = "", .input = MODEL_INPUT};
    TDM_TRY(expand_items(&e, &model, list));
    check_blocks(&e);
    if (config->has_block_fault || e.current == config->expanded_count - 1) return config->faults.status;
    config->has_block_fault = true;
    TDM_FAULT(config, REFERENCE, list->last->at, "model.layers", "put a layer behind it, or give it no `when`",
              "the model's output must be the output of its last layer, which `when` leaves out");
    return config->faults.status;
}
