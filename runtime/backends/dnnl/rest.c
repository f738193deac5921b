/* Gives back the pages of oneDNN's library that only preparing reads.
 *
 * Planning a convolution asks every implementation that oneDNN has, which brings 5 MiB of its code into the process;
 * running what was planned reads next to none of it. These pages are the file's own: if they are read again, the system
 * maps them again. */
#include <link.h>
#include <stdint.h>

#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/system/pages.h"

static bool holds(const struct dl_phdr_info *library, uintptr_t address) {
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz) return true;
    }
    return false;
}

/* The loader has written into the code, which the file does not have. */
static bool is_patched(const struct dl_phdr_info *library) {
    for (int i = 0; i < library->dlpi_phnum; i++) {
        if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(uintptr_t)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
                return true;
    }
    return false;
}

static int give_back(struct dl_phdr_info *library, size_t bytes, void *address) {
    (void)bytes;
    if (!holds(library, (uintptr_t)address)) return 0;
    if (is_patched(library)) return 1;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W) != 0) continue;
        tdm__give_back_pages(library->dlpi_addr + part->p_vaddr, part->p_memsz);
    }
    return 1;
}

void tdm__dnnl_rest(void) {
    (void)dl_iterate_phdr(give_back, (void *)(uintptr_t)dnnl_version);
}
