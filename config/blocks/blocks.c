/* Reads model.blocks: what each block is called, its parameters, its layers. The layers themselves are read where the
 * block is used. */
#include "config/blocks/blocks.h"

#include <ctype.h>
#include <string.h>

#include "runtime/base/status.h"

static const char form[] = "write `name: {params: {out, stride: 1}, layers: [...]}`";

static int find_param(const tdm_block *block, const char *word, size_t length) {
    for (int i = 0; i < block->param_count; i++) {
        const char *name = block->param[i]->key;
        if (strlen(name) == length && memcmp(name, word, length) == 0) return i;
    }
    return -1;
}

int tdm__block_param(const tdm_block *block, const tdm_yaml_node *node) {
    const char *text = node->kind == TDM_YAML_SCALAR ? node->text : "";
    if (text[0] != '$' || block == NULL) return -1;
    const bool in_braces = text[1] == '{';
    const char *word = text + 1 + in_braces;
    if (in_braces && text[strlen(text) - 1] != '}') return -1;
    const size_t length = strlen(word) - in_braces;
    return find_param(block, word, length);
}

/* ---- parameters ---- */

/* The keys that a use has besides parameters, and what only looks like a parameter: ${name}, ${start_time}. */
static bool is_reserved(const char *name) {
    static const char *const words[] = {"use", "name", "id", "input", "repeat", "first", "when", "start_time"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], name) == 0) return true;
    }
    return false;
}

static size_t word_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

static bool is_word(const char *name) {
    const size_t length = word_length(name);
    return length > 0 && length <= 40 && name[length] == '\0' && isalpha((unsigned char)name[0]);
}

static void read_params(tdm_config *config, tdm_block *block, const tdm_yaml_node *params, const char *key) {
    if (tdm__yaml_is_null(params)) return;
    if (params->kind != TDM_YAML_MAP || params->count > TDM_BLOCK_PARAMS_MAX) {
        TDM_FAULT(config, VALUE, params->at, key, "write `params: {out, stride: 1}`; one without a value must be given",
                  "the params of block '%s' must be a mapping of at most %d names", block->name, TDM_BLOCK_PARAMS_MAX);
        return;
    }
    for (const tdm_yaml_node *param = params->first; param != NULL; param = param->next) {
        if (param->is_repeated) continue;
        if (!is_word(param->key) || is_reserved(param->key))
            TDM_FAULT(config, REFERENCE, param->key_at, key, "choose another name, of small letters, digits and _",
                      "'%.60s' cannot be the name of a parameter", param->key);
        else if (param->kind == TDM_YAML_MAP)
            TDM_FAULT(config, VALUE, param->at, key, "", "the parameter '%s' must be a value or a list, got a mapping",
                      param->key);
        block->param[block->param_count++] = param;
    }
}

static void unknown_param(tdm_config *config, const tdm_block *block, const tdm_yaml_node *node) {
    const char *names[TDM_BLOCK_PARAMS_MAX];
    if (tdm__fault_skip(&config->faults)) return;
    for (int i = 0; i < block->param_count; i++) names[i] = block->param[i]->key;
    const char *word = node->text + strspn(node->text, "${");
    const char *bare = TDM_WORDS(config, "%.*s", (int)strcspn(word, "}"), word);
    const char *hint = tdm__hint_nearest(config, bare, names, block->param_count);
    if (hint[0] == '\0') hint = TDM_WORDS(config, "add it to the params of block '%s'", block->name);
    TDM_FAULT(config, SUBSTITUTION, node->at, "model.blocks", hint, "block '%s' has no parameter '%.60s'", block->name,
              bare);
}

/* The parameter that a text names somewhere in it, such as n in x${n}: its index; -1: none. */
static int param_within(const tdm_block *block, const char *text) {
    const char *word = strchr(text, '$');
    if (word == NULL) return -1;
    word += word[1] == '{' ? 2 : 1;
    const size_t length = word_length(word);
    if (word[length] == ':') return -1; /* ${env:X} */
    return find_param(block, word, length);
}

/* A text that is not the whole of a parameter: has it one inside, or does it name one that is not there? */
static void scan_text(tdm_config *config, const tdm_block *block, const tdm_yaml_node *node, bool is_used[]) {
    const int within = param_within(block, node->text);
    if (within >= 0) {
        is_used[within] = true;
        TDM_FAULT(config, SUBSTITUTION, node->at, "model.blocks", "let the parameter be the whole text",
                  "$%s stands for a whole value, got '%.60s'", block->param[within]->key, node->text);
    } else if (node->text[0] == '$') {
        unknown_param(config, block, node);
    }
}

/* Marks the parameters that the layers use, and refuses those that are not there. As deep as YAML may be. */
static void scan(tdm_config *config, const tdm_block *block, const tdm_yaml_node *node, bool is_used[]) {
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) scan(config, block, item, is_used);
    if (node->kind != TDM_YAML_SCALAR) return;
    const int index = tdm__block_param(block, node);
    const bool is_general = strncmp(node->text, "${env:", 6) == 0 || strncmp(node->text, "${name}", 7) == 0 ||
                            strncmp(node->text, "${start_time}", 13) == 0;
    if (index >= 0)
        is_used[index] = true;
    else if (!is_general)
        scan_text(config, block, node, is_used);
}

static void check_params(tdm_config *config, const tdm_block *block) {
    bool is_used[TDM_BLOCK_PARAMS_MAX] = {false};
    scan(config, block, block->layers, is_used);
    for (int i = 0; i < block->param_count; i++) {
        const char *name = block->param[i]->key;
        if (is_used[i] || !is_word(name) || is_reserved(name)) continue;
        TDM_FAULT(config, REFERENCE, block->param[i]->key_at, "model.blocks",
                  TDM_WORDS(config, "write $%s where its value belongs, or remove it", name),
                  "block '%s' does not use its parameter '%s'", block->name, name);
    }
}

/* ---- one block ---- */

static void read_block(tdm_config *config, tdm_block *block, const tdm_yaml_node *node) {
    static const char *const keys[] = {"params", "layers"};
    const char *key = TDM_WORDS(config, "model.blocks.%.60s", node->key);
    *block = (tdm_block){.name = node->key, .at = node->key_at};
    const tdm_yaml_node *layers = tdm__yaml_find(node, "layers"), *params = tdm__yaml_find(node, "params");
    if (strlen(node->key) > TDM_BLOCK_NAME_MAX || node->key[0] == '\0') {
        TDM_FAULT(config, REFERENCE, node->key_at, "model.blocks", "", "the name of a block must have 1 to %d letters",
                  TDM_BLOCK_NAME_MAX);
        return;
    }
    for (const tdm_yaml_node *member = node->first; node->kind == TDM_YAML_MAP && member != NULL;
         member = member->next) {
        if (member == layers || member == params || member->is_repeated || strncmp(member->key, "x-", 2) == 0) continue;
        const char *hint = tdm__hint_nearest(config, member->key, keys, 2);
        TDM_FAULT(config, UNKNOWN_KEY, member->key_at, key, hint[0] != '\0' ? hint : form,
                  "unknown key '%.60s' in block '%s'", member->key, node->key);
    }
    if (params != NULL) read_params(config, block, params, key);
    if (node->kind != TDM_YAML_MAP) {
        TDM_FAULT(config, VALUE, node->at, key, form, "block '%s' must be a mapping with layers, got %s", node->key,
                  tdm__yaml_words(&config->faults, node));
    } else if (layers == NULL) {
        TDM_FAULT(config, MISSING, node->key_at, key, form, "block '%s' needs the key `layers`", node->key);
    } else if (layers->kind != TDM_YAML_LIST || layers->count == 0) {
        TDM_FAULT(config, VALUE, layers->at, key, "begin each layer with `- `",
                  "the layers of block '%s' must be a list of layers, got %s", node->key,
                  layers->count == 0 && layers->kind == TDM_YAML_LIST ? "none"
                                                                      : tdm__yaml_words(&config->faults, layers));
    } else {
        block->layers = layers;
        check_params(config, block);
    }
}

tdm_status tdm__blocks_read(tdm_config *config, tdm_block **out, int *count) {
    const tdm_yaml_node *node = config->blocks_node;
    const int before = config->faults.total;
    *count = 0;
    *out = NULL;
    if (node == NULL || tdm__yaml_is_null(node)) return TDM_OK;
    if (node->kind != TDM_YAML_MAP || node->count > TDM_BLOCKS_MAX) {
        config->has_block_fault = true;
        TDM_FAULT(config, VALUE, node->at, "model.blocks", form, "model.blocks must be a mapping of at most %d blocks",
                  TDM_BLOCKS_MAX);
        return config->faults.status;
    }
    TDM_TRY(tdm__zone_new(&config->work, out, (size_t)node->count, sizeof(tdm_block)));
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) {
        if (!item->is_repeated && strncmp(item->key, "x-", 2) != 0) read_block(config, &(*out)[(*count)++], item);
    }
    config->has_block_fault =
        config->faults.total != before; /* what uses such a block would have faults of the same cause */
    return config->faults.status;
}
