/* orders.h - what `tandem launch --hosts` tells each host of the job, over the standard input of `tandem --hosted`
 * there, which ssh has started. First come the orders, then words of one byte. The end of the input means that the
 * launching process, or the way to it, is gone: then nothing may be left of the job. Nothing of this is on a command
 * line, which other users see, and no shell reads it. */
#ifndef ORDERS_H
#define ORDERS_H

#include "tools/tool.h"

/* ORDERS_BEAT comes every second, so that silence means something. */
enum { ORDERS_STOP = 's', ORDERS_BEAT = '.' };

/* What `tandem --hosted --greet` writes on standard error before anything else, with its version behind it: so the
 * launching process knows whether tandem has begun there, and which. */
#define ORDERS_GREETING "tandem hosted "

typedef struct launch_orders {
    const char *secret;          /* of the job; who does not know it cannot join */
    int hosts, host;             /* their number; which one this is */
    const int *ranks;            /* of each host */
    const char *master;          /* the host of rank 0 */
    int port;                    /* at which rank 0 listens */
    const char *cwd;             /* of the launching process: relative paths of the command line begin there */
    const char *config, *folder; /* the text of CONFIG, and where its relative paths begin */
    const char *run_dir;         /* absolute; "": none */
    int argc;
    char **argv; /* the command line: tandem launch ... */
    /* Set by the receiver. Two files in memory, for the processes that it starts: the orders, and the secret alone. */
    int fd, secret_fd;
    char *text; /* holds all of the above */
} launch_orders;

/* The orders as they are sent. The caller frees the text. */
char *orders_text(const launch_orders *orders, size_t *bytes);
/* Reads them from standard input, in `tandem --hosted`. Returns the exit code, after printing what is wrong. */
int orders_receive(launch_orders **out);
/* The same for the processes that this one starts. *out stays NULL if this process is none of them. */
int orders_inherit(launch_orders **out);
void orders_free(launch_orders *orders); /* NULL is allowed */

/* Obeys the words from now on, in a thread: a stop becomes a signal to this process. This process exits, and so do
 * those that it has started, when the input ends, or when nothing has come for `silence` seconds (0: no limit). */
void orders_follow(double silence);

#endif
