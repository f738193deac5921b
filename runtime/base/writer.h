/* A program's writer as a file system with one file, for code that writes files from front to end. */
#ifndef TDM_BASE_WRITER_H
#define TDM_BASE_WRITER_H

#include <tandem/writer.h>

#include "runtime/base/system/file.h"

typedef struct tdm_sink {
    tdm_file_ops ops; /* for tdm__out_open; every file goes to the writer, one behind the other */
    const tdm_writer *writer;
    uint64_t count; /* bytes that it has taken */
    int said;       /* by the writer, when it took no more; 0: it takes all */
} tdm_sink;

/* TDM_E_USAGE if it is no writer; `function` is the public one that was given it. `sink` stays where it is. */
tdm_status tdm__sink_init(tdm_sink *sink, const tdm_writer *writer, const char *function);
/* The status of what was written: where the writer has refused, that is said instead of the error of a file. */
tdm_status tdm__sink_end(const tdm_sink *sink, tdm_status status, const char *function);

#endif
