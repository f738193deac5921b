/* summary.h - the output after the last step: a table on stdout and the next command to type. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "tools/commands/tool.h"

void summary_print(const tool *t, const tdm_job *job, tdm_run *run, bool stopped, bool brief);

#endif
