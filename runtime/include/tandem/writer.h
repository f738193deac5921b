/* tandem/writer.h - where bytes go that become no file: to a function of the program, or into one buffer. */
#ifndef TANDEM_WRITER_H
#define TANDEM_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

/* Set `size` with TDM_WRITER_INIT. */
typedef struct tdm_writer {
    uint32_t size;
    /* Takes the next `count` bytes, at least 1, which are gone when it returns. Called from front to end, on the thread
     * that called tandem; it must not call functions on the same object. Non-zero: it cannot. It is then not called
     * again, and the function that writes fails with TDM_E_IO, or with TDM_E_MEMORY if that was returned; what it has
     * taken so far is worth nothing. */
    int (*write)(void *user, const void *bytes, size_t count);
    void *user;
} tdm_writer;
#define TDM_WRITER_INIT \
    { sizeof(tdm_writer), NULL, NULL }

/* Memory that grows: the `user` of a writer whose `write` is tdm_buffer_write. It begins as TDM_BUFFER_INIT. `bytes`
 * begin at a multiple of 64, as tdm_model_open_memory likes it. */
typedef struct tdm_buffer {
    uint32_t size;
    void *bytes;
    size_t count, capacity;
} tdm_buffer;
#define TDM_BUFFER_INIT \
    { sizeof(tdm_buffer), NULL, 0, 0 }
/* Adds bytes at the end. TDM_OK, TDM_E_MEMORY, or TDM_E_USAGE if it is no buffer; any thread, one at a time. */
TDM_API int tdm_buffer_write(void *buffer, const void *bytes, size_t count);
/* Frees the bytes; the buffer is empty then and may be used again. NULL is allowed. */
TDM_API void tdm_buffer_free(tdm_buffer *buffer);

TDM_END_DECLS
#endif
