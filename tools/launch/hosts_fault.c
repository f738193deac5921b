/* hosts_fault.c - what other hosts say first: see hosts_watch.h. */
#include <string.h>

#include "tools/launch/hosts_watch.h"

/* The first that fits counts: what ssh writes at the end says less. */
static const ssh_fault faults[] = {
    {"Could not resolve hostname", "its name cannot be looked up here", "write it as ssh knows it, or its address"},
    {"IDENTIFICATION HAS CHANGED", "its key is not the one that is known here",
     "if it was set up anew, forget the old key with ssh-keygen -R; else it may be another machine"},
    {"Host key verification failed", "its key is not known here",
     "connect by hand once, and compare the key that ssh shows"},
    {"Permission denied", "it does not let this user in", "give it a key with ssh-copy-id, or write user@host"},
    {"Too many authentication failures", "it refused all keys that were tried", "name one: --ssh 'ssh -i KEY'"},
    {"Connection refused", "nothing listens at its port", "start sshd there, or name the port: --ssh 'ssh -p PORT'"},
    {"timed out", "it does not answer", "it may be down, or a firewall keep ssh out"},
    {"No route to host", "no way leads there", "it may be down, or its address be wrong"},
    {"is unreachable", "no way leads there", "its address may be wrong"},
    {"Connection closed by", "it closed the connection", "its sshd's log says why"},
    {"Connection reset by", "it closed the connection", "its sshd's log says why"},
};

bool hosted_notes(hosted *h, const char *line) {
    if (h->host->is_here || h->version) return false;
    /* A login's text without a newline may stand in front of it. */
    const char *greeting = strstr(line, ORDERS_GREETING);
    if (greeting) {
        h->version = text_copy(greeting + strlen(ORDERS_GREETING));
        return true;
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0] && !h->fault; i++)
        if (strstr(line, faults[i].words)) h->fault = &faults[i];
    return false;
}

bool hosted_is_foreign(const hosted *h) {
    if (h->host->is_here) return false;
    return h->version ? strcmp(h->version, tdm_version()) != 0 : h->is_stranger;
}
