/* tell.c - errors of the library as people read them: place first, then the message, in one line. */
#include "tools/term.h"

int tell_error_of(const tdm_error *error) {
    char place[600] = "";
    if (error->file[0] && error->line > 0) {
        snprintf(place, sizeof place, "%s:%d:%d: ", error->file, error->line, error->column);
    }
    term_line("%standem: error:%s %s%s", term_on(stderr, TERM_RED), term_off(stderr), place,
              error->message[0] ? error->message : tdm_status_text(error->status));
    if (error->status == TDM_E_INTERNAL) {
        term_line("       this is a bug in tandem %s; please report it with the output of `tandem doctor`",
                  tdm_version());
        for (int i = 0; i < error->frame_count && i < TDM_ERROR_FRAMES; i++) {
            term_line("       at %s:%d", error->frame[i].file, error->frame[i].line);
        }
    }
    return (int)error->status;
}

int tell_error(tdm_status status) {
    tdm_error error = *tdm_error_last();
    error.status = status;
    return tell_error_of(&error);
}
