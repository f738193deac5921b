/* Finds the note that `ld --build-id` has written into the object that contains this code. */
#include "runtime/base/system/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/round.h"

typedef struct search {
    uintptr_t here;
    char *out;
} search;

static void read_notes(const char *at, size_t bytes, char *out) {
    ElfW(Nhdr) note;
    while (bytes >= sizeof(note)) {
        memcpy(&note, at, sizeof(note));
        size_t name_at = sizeof(note), id_at = name_at + tdm__round_up(note.n_namesz, 4);
        size_t end = id_at + tdm__round_up(note.n_descsz, 4);
        if (end > bytes) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + name_at, "GNU", 4) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 3 <= TDM_BUILD_ID_TEXT; i++)
                snprintf(out + 2 * i, 3, "%02x", (unsigned)(unsigned char)at[id_at + i]);
            return;
        }
        at += end;
        bytes -= end;
    }
}

static int look_at(struct dl_phdr_info *object, size_t size, void *user) {
    const search *s = user;
    (void)size;
    bool holds_this_code = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t first = object->dlpi_addr + segment->p_vaddr;
        bool holds = s->here >= first && s->here - first < segment->p_memsz;
        if (segment->p_type == PT_LOAD && holds) holds_this_code = true;
    }
    for (int i = 0; holds_this_code && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE)
            read_notes((const char *)(object->dlpi_addr + segment->p_vaddr), segment->p_memsz, s->out);
    }
    return holds_this_code;
}

const char *tdm__build_id(char out[TDM_BUILD_ID_TEXT]) {
    search s = {.here = (uintptr_t)&tdm__build_id, .out = out};
    snprintf(out, TDM_BUILD_ID_TEXT, "no build id");
    (void)dl_iterate_phdr(look_at, &s);
    return out;
}
