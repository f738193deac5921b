/* The two messages of the meeting: a rank's hello to rank 0, and the answer. */
#ifndef TDM_COMM_GREETING_H
#define TDM_COMM_GREETING_H

#include <stdbool.h>
#include <stdint.h>

enum { TDM_REASON_TEXT = 400 };

typedef struct tdm_hello {
    char magic[8];
    uint64_t job; /* as in tdm_door */
    int32_t rank, world;
    char failure[TDM_REASON_TEXT]; /* "": asks for the descriptor; else why this rank has failed */
} tdm_hello;

typedef struct tdm_answer {
    char magic[8];
    int32_t status;                /* of a refusal */
    char refusal[TDM_REASON_TEXT]; /* "": admitted, the descriptor comes with this message */
} tdm_answer;

/* None of these waits. Each sends or receives one message, and sets or checks `magic`. False: it could not be sent, or
 * what arrived is not ours. Received texts end with a NUL. */
bool tdm__hello_send(int to, tdm_hello *hello);
bool tdm__hello_receive(int from, tdm_hello *hello);
bool tdm__answer_send(int to, tdm_answer *answer, int fd); /* fd < 0: none goes with it */
/* *fd is the descriptor that came with it, or -1. */
bool tdm__answer_receive(int from, tdm_answer *answer, int *fd);

#endif
