/* hosts_verdict.c - what a job on several hosts ended with, and which host is to blame: see hosts_watch.h. */
#include "tools/launch/hosts_watch.h"
#include "tools/terminal/term.h"

/* ---- the verdict ---- */

/* The host whose failure caused the others': the first that did not only lose a peer, else the first. */
static const hosted *first_cause(const fleet *f) {
    const hosted *best = NULL;
    for (int i = 0; i < f->count; i++) {
        const hosted *h = &f->host[i];
        if (!h->ended || ((h->code == TDM_OK || fleet_has_stopped(h)) && !h->is_stranger)) continue;
        const bool lost = h->code == TDM_E_COMM, best_lost = best && best->code == TDM_E_COMM;
        if (!best || (best_lost && !lost) || (best_lost == lost && h->order < best->order)) best = h;
    }
    return best;
}

/* Of a host on which no tandem has begun. */
static int blame_ssh(const hosts_job *job, const hosted *h) {
    const char *name = h->host->name;
    if (h->code == SSH_FAILED && h->fault)
        term_error("host %s: ssh could not connect: %s; %s. `%s -o BatchMode=yes %s true` must work without a question",
                   name, h->fault->what, h->fault->advice, job->ssh, h->host->target);
    else if (h->code == SSH_FAILED)
        term_error(
            "host %s: ssh could not connect, and said so above; `%s -o BatchMode=yes %s true` must work without a "
            "question",
            name, job->ssh, h->host->target);
    else if (h->code == SHELL_NOT_FOUND)
        term_error("host %s: tandem (%s) was not found there, or ssh (%s) not here; see above, and set --remote-tandem "
                   "or --ssh",
                   name, job->program, job->ssh);
    else if (h->code == SHELL_CANNOT_RUN)
        term_error("host %s: %s cannot be run there, see above: it must be tandem %s for that machine; set "
                   "--remote-tandem, or chmod +x",
                   name, job->program, tdm_version());
    else
        term_error("host %s: %s there is not tandem %s: it ended with code %d and did not greet; install the same "
                   "version there, or set --remote-tandem",
                   name, job->program, tdm_version(), h->code);
    return h->code == SSH_FAILED ? TDM_E_COMM : TDM_E_USAGE;
}

static int blame(const hosts_job *job, const hosted *h) {
    const char *name = h->host->name;
    if (!h->host->is_here && !h->version) return blame_ssh(job, h);
    if (hosted_is_foreign(h)) {
        term_error("host %s: %s there is tandem %s, and this is %s; install the same version on all hosts", name,
                   job->program, h->version, tdm_version());
        return TDM_E_USAGE;
    }
    if (!h->host->is_here && h->code == SSH_FAILED) {
        term_error(
            "host %s: tandem had begun there, and then the connection was lost, or tandem was killed: is the host "
            "up, and was it short of memory (dmesg)? The same command carries on from the last checkpoint",
            name);
        return TDM_E_COMM;
    }
    term_error("host %s failed first, with code %d; its lines above say why", name, h->code);
    return h->code;
}

/* Host 0 knows best whether there is a checkpoint. A rank that only learned of a signal reports SIGTERM. */
static int good_code(const fleet *f) {
    int code = TDM_OK;
    for (int i = f->count - 1; i >= 0; i--) {
        if (f->host[i].code != TDM_OK) code = f->host[i].code;
    }
    return code == 128 + SIGTERM && f->first_signal != 0 ? 128 + f->first_signal : code;
}

int fleet_verdict(const fleet *f) {
    const hosted *cause = first_cause(f);
    if (f->signals > 1) return 128 + f->first_signal;
    for (int i = 0; i < f->count; i++) {
        const hosted *h = &f->host[i];
        if (h->ended) continue;
        term_line("tandem: warning: host %s has not ended, and is left behind; look for processes of the job there",
                  h->host->name);
        if (!cause) return TDM_E_INTERNAL;
    }
    return cause ? blame(f->job, cause) : good_code(f);
}
