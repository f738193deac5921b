/* What two ranks on several hosts say to one another when they meet: challenge, hello, answer. */
#ifndef TDM_COMM_MEETING_HELLO_H
#define TDM_COMM_MEETING_HELLO_H

#include "runtime/comm/meeting/meeting.h"

enum { TDM_MEETING_TEXT = 400 };

/* By rank 0, to whoever connects. */
typedef struct tdm_challenge {
    char magic[8];
    uint32_t layout, zero;
    unsigned char nonce[TDM_NONCE_BYTES];
} tdm_challenge;

/* By the visitor. */
typedef struct tdm_hosts_hello {
    char magic[8];
    uint64_t job;
    int32_t rank, world;
    tdm_peer self;
    char failure[TDM_MEETING_TEXT]; /* "": takes part */
    unsigned char nonce[TDM_NONCE_BYTES];
    unsigned char proof[TDM_MAC_BYTES]; /* over the challenge's nonce and all before */
} tdm_hosts_hello;

/* By rank 0: first whether the visitor is admitted; while it waits, which ranks are missing (status TDM_OK, and a text);
 * when all have come or one has failed, how the meeting ended. The list of the ranks follows a good end. */
typedef struct tdm_hosts_answer {
    char magic[8];
    int32_t status, zero;
    char text[TDM_MEETING_TEXT];        /* why not; who is missing; "": all is well */
    unsigned char proof[TDM_MAC_BYTES]; /* over the hello's nonce and all before */
} tdm_hosts_answer;

tdm_status tdm__challenge_make(tdm_challenge *out);
bool tdm__challenge_is_ours(const tdm_challenge *challenge); /* of a tandem that this one can talk to */

void tdm__hello_sign(tdm_hosts_hello *hello, const tdm_challenge *challenge, const tdm_secret *secret);
/* False for garbage, and for one that does not know the secret. Its texts then end with a NUL. */
bool tdm__hello_check(tdm_hosts_hello *hello, const tdm_challenge *challenge, const tdm_secret *secret);

void tdm__answer_sign(tdm_hosts_answer *answer, const tdm_hosts_hello *hello, const tdm_secret *secret);
bool tdm__answer_check(tdm_hosts_answer *answer, const tdm_hosts_hello *hello, const tdm_secret *secret);

#endif
