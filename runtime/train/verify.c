/* Are the replicas still equal? Each replica hashes its tensors, and the hashes are compared; if they differ, the
 * verdict names the replica and its first differing tensor. At the end of each step, all replicas that update
 * themselves hold the same bits of parameters and optimizer state, and all ranks the same batch counters. Not compared:
 * batch-norm statistics, which differ until rank 0's are copied, and in dp with `update: root` the other replicas'
 * parameters, which the next step copies anew. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"

/* The tensors that are compared. */
typedef struct compared {
    const tdm_named **item;
    int count;
} compared;

static tdm_status list_compared(const tdm_run *run, tdm_zone *memory, compared *out) {
    *out = (compared){.count = 0};
    TDM_TRY(tdm__zone_new(memory, &out->item, (size_t)run->tensor_count, sizeof(const tdm_named *)));
    for (int i = 0; i < run->tensor_count; i++) {
        const tdm_named *named = &run->tensors[i];
        if (named->arena != TDM_ARENA_BUFFER || (named->is_counter && run->comm != NULL))
            out->item[out->count++] = named;
    }
    return TDM_OK;
}

static tdm_status hash_compared(tdm_replica *replica, const compared *all, tdm_hash128 *out) {
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    for (int i = 0; i < all->count; i++) {
        char *data;
        TDM_TRY(tdm__tensor_at(replica, all->item[i], arenas, &data));
        out[i] = tdm__hash(data, all->item[i]->bytes);
    }
    return TDM_OK;
}

/* The hashes of all replicas, [replicas][tensors]. */
static tdm_status gather(tdm_run *run, const compared *all, tdm_zone *memory, tdm_hash128 **out) {
    size_t count = (size_t)all->count, replicas = (size_t)run->replicas, bytes = count * sizeof(**out);
    tdm_hash128 *own;
    TDM_TRY(tdm__zone_new(memory, out, replicas * count, sizeof(**out)));
    for (size_t i = 0; run->comm == NULL && i < replicas; i++)
        TDM_TRY(hash_compared(run->mode->replica[i], all, *out + i * count));
    if (run->comm == NULL) return TDM_OK;
    TDM_TRY(tdm__zone_new(memory, &own, count, sizeof(*own)));
    TDM_TRY(hash_compared(run->mode->replica[0], all, own));
    return tdm_comm_all_gather(run->comm, (tdm_span){own, bytes, TDM_DTYPE_U8},
                               (tdm_span){*out, replicas * bytes, TDM_DTYPE_U8});
}

/* ---- the verdict ---- */

static bool is_same(const tdm_hash128 *table, const compared *all, int a, int b) {
    return memcmp(table + a * all->count, table + b * all->count, (size_t)all->count * sizeof(*table)) == 0;
}

/* The first replica that equals more than half of all; -1: there is none. */
static int find_majority(const tdm_hash128 *table, const compared *all, int count) {
    for (int i = 0; i < count; i++) {
        int like = 0;
        for (int k = 0; k < count; k++) like += is_same(table, all, i, k);
        if (2 * like > count) return i;
    }
    return -1;
}

static tdm_status judge(const tdm_run *run, const compared *all, const tdm_hash128 *table, int count) {
    const char *what = run->comm != NULL ? "rank" : "replica";
    int majority = find_majority(table, all, count), like = majority >= 0 ? majority : 0, other = 0, others = 0;
    int first = -1, parts_count = 0;
    char beside[48], more[48] = "";
    for (int i = count - 1; i >= 0; i--) {
        if (is_same(table, all, i, like)) continue;
        other = i;
        others++;
    }
    if (others == 0) return TDM_OK;
    for (int i = all->count - 1; i >= 0; i--) {
        if (memcmp(&table[like * all->count + i], &table[other * all->count + i], sizeof(*table)) == 0) continue;
        first = i;
        parts_count++;
    }
    if (majority >= 0)
        snprintf(beside, sizeof(beside), "the %d that are equal", count - others);
    else
        snprintf(beside, sizeof(beside), "%s %d", what, like);
    if (others > 1 && majority >= 0) snprintf(more, sizeof(more), " (and so do %d more)", others - 1);
    TDM_FAIL(
        TDM_E_CHECK,
        "the replicas are no longer equal after step %lld: %s %d differs from %s%s in %d of %d tensors, the first is "
        "%s; check its memory and its device, and continue from the last checkpoint",
        (long long)run->step, what, other, beside, more, parts_count, all->count, all->item[first]->name);
}

tdm_status tdm__run_verify(tdm_run *run) {
    tdm_zone memory;
    compared all;
    tdm_hash128 *table = NULL;
    if (run->comm == NULL && !(run->mode->is_verified && run->replicas > 1)) return TDM_OK;
    tdm__zone_init(&memory, run->host);
    tdm_status status = list_compared(run, &memory, &all);
    if (status == TDM_OK) status = gather(run, &all, &memory, &table);
    if (status == TDM_OK) status = judge(run, &all, table, run->replicas);
    tdm__zone_deinit(&memory);
    return status;
}
