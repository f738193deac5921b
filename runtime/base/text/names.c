#include "runtime/base/text/names.h"

#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"

enum { FIRST_ENTRIES = 32 };

static uint32_t hash_of(const tdm_names *names, const char *text) {
    return (uint32_t)tdm__hash64(text, strlen(text), names->seed);
}

static tdm_name *find_entry(const tdm_names *names, const char *text, uint32_t hash) {
    size_t at = hash & (names->entries - 1);
    for (; names->entry[at].text != NULL; at = (at + 1) & (names->entries - 1)) {
        if (names->entry[at].hash == hash && strcmp(names->entry[at].text, text) == 0) break;
    }
    return &names->entry[at];
}

int tdm__names_find(const tdm_names *names, const char *text) {
    if (names->count == 0) return -1;
    const tdm_name *entry = find_entry(names, text, hash_of(names, text));
    return entry->text != NULL ? entry->number : -1;
}

/* The hash is seeded with an address, which the author of a file cannot know. So no file can make all names collide. */
static tdm_status enlarge(tdm_names *names, tdm_zone *zone) {
    tdm_names larger = {.entries = names->entries == 0 ? FIRST_ENTRIES : 2 * names->entries, .count = names->count};
    TDM_TRY(tdm__zone_new(zone, &larger.entry, larger.entries, sizeof(*larger.entry)));
    larger.seed = names->entries == 0 ? (uint64_t)(uintptr_t)larger.entry : names->seed;
    for (size_t i = 0; i < names->entries; i++) {
        const tdm_name *entry = &names->entry[i];
        if (entry->text != NULL) *find_entry(&larger, entry->text, entry->hash) = *entry;
    }
    *names = larger;
    return TDM_OK;
}

tdm_status tdm__names_add(tdm_names *names, tdm_zone *zone, const char *text, int number) {
    if (2 * (names->count + 1) > names->entries) TDM_TRY(enlarge(names, zone));
    const uint32_t hash = hash_of(names, text);
    *find_entry(names, text, hash) = (tdm_name){.text = text, .hash = hash, .number = number};
    names->count++;
    return TDM_OK;
}
