/* Memory that a job keeps until its transport is closed. */
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"

typedef struct tdm_hosts_block {
    struct tdm_hosts_block *next;
    void *data;
} tdm_hosts_block;

tdm_status tdm__hosts_memory_new(tdm_hosts_job *job, size_t bytes, void **out) {
    tdm_hosts_block *block;
    *out = NULL;
    TDM_TRY(tdm__new(job->host, &block, 1, sizeof(*block), "communicator's memory"));
    TDM_TRY_ELSE(tdm__new_pages(job->host, &block->data, bytes > 0 ? bytes : 1, "communicator's memory"),
                 tdm__delete(job->host, block));
    block->next = atomic_load(&job->blocks);
    while (!atomic_compare_exchange_weak(&job->blocks, &block->next, block)) continue;
    *out = block->data;
    return TDM_OK;
}

void tdm__hosts_memory_delete(tdm_hosts_job *job) {
    for (tdm_hosts_block *block = atomic_load(&job->blocks); block != NULL;) {
        tdm_hosts_block *next = block->next;
        tdm__delete_pages(job->host, block->data);
        tdm__delete(job->host, block);
        block = next;
    }
}
