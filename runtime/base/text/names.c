#include "runtime/base/text/names.h"

#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"

enum { FIRST_SLOTS = 32 };

static uint32_t hash_of(const tdm_names *names, const char *text) {
    return (uint32_t)tdm__hash64(text, strlen(text), names->seed);
}

static tdm_name *find_slot(const tdm_names *names, const char *text, uint32_t hash) {
    size_t at = hash & (names->slots - 1);
    for (; names->slot[at].text != NULL; at = (at + 1) & (names->slots - 1)) {
        if (names->slot[at].hash == hash && strcmp(names->slot[at].text, text) == 0) break;
    }
    return &names->slot[at];
}

int tdm__names_find(const tdm_names *names, const char *text) {
    if (names->count == 0) return -1;
    const tdm_name *slot = find_slot(names, text, hash_of(names, text));
    return slot->text != NULL ? slot->number : -1;
}

/* The hash is seeded with an address, which the author of a file cannot know. So no file can make all names collide. */
static tdm_status enlarge(tdm_names *names, tdm_arena *arena) {
    tdm_names larger = {.slots = names->slots == 0 ? FIRST_SLOTS : 2 * names->slots, .count = names->count};
    TDM_TRY(tdm__arena_new(arena, &larger.slot, larger.slots, sizeof(*larger.slot)));
    larger.seed = names->slots == 0 ? (uint64_t)(uintptr_t)larger.slot : names->seed;
    for (size_t i = 0; i < names->slots; i++) {
        const tdm_name *slot = &names->slot[i];
        if (slot->text != NULL) *find_slot(&larger, slot->text, slot->hash) = *slot;
    }
    *names = larger;
    return TDM_OK;
}

tdm_status tdm__names_add(tdm_names *names, tdm_arena *arena, const char *text, int number) {
    if (2 * (names->count + 1) > names->slots) TDM_TRY(enlarge(names, arena));
    const uint32_t hash = hash_of(names, text);
    *find_slot(names, text, hash) = (tdm_name){.text = text, .hash = hash, .number = number};
    names->count++;
    return TDM_OK;
}
