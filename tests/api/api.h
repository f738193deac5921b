/* A small job that runs in milliseconds, for tests of the public interface. Only public headers are used. */
#ifndef TDM_TEST_API_H
#define TDM_TEST_API_H

#include <tandem/tandem.h>

#include "tests/support/test_folder.h"

/* conv, relu, pool, batch norm, dropout, linear over 2 x 6 x 6 inputs and 3 classes. Ends the program on failure. */
tdm_graph *api_graph(const tdm_host *host);
/* linear from `width` inputs to 3 classes. Ends the program on failure. */
tdm_graph *api_linear_graph(int64_t width);
/* 6 steps of Adam over synthetic data, 4 rows a device; no run directory. */
void api_job(tdm_job *job);
/* The parameters' hash after the job, run alone in this thread. */
void api_train(const tdm_job *job, const tdm_graph *graph, char hash[40]);

/* Entries of /proc/self/<what>: fd, task. */
int api_proc_count(const char *what);

#endif
