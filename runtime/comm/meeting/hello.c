/* See hello.h. */
#include "runtime/comm/meeting/hello.h"

#include <string.h>

/* Raise LAYOUT when one of these structs or the frames of hub.c change. */
enum { LAYOUT = 4 };
static const char magic[8] = "tandem1"; /* and the end of the text */

tdm_status tdm__challenge_make(tdm_challenge *out) {
    *out = (tdm_challenge){.layout = LAYOUT};
    memcpy(out->magic, magic, sizeof(magic));
    return tdm__nonce(out->nonce);
}

bool tdm__challenge_is_ours(const tdm_challenge *challenge) {
    return memcmp(challenge->magic, magic, sizeof(magic)) == 0 && challenge->layout == LAYOUT;
}

static void prove_hello(unsigned char out[TDM_MAC_BYTES], const tdm_hosts_hello *hello, const tdm_challenge *challenge,
                        const tdm_secret *secret) {
    const tdm_mac_part parts[] = {
        {"hello", 5}, {challenge, sizeof(*challenge)}, {hello, offsetof(tdm_hosts_hello, proof)}};
    tdm__mac(out, secret, parts, 3);
}

void tdm__hello_sign(tdm_hosts_hello *hello, const tdm_challenge *challenge, const tdm_secret *secret) {
    memcpy(hello->magic, magic, sizeof(magic));
    prove_hello(hello->proof, hello, challenge, secret);
}

bool tdm__hello_check(tdm_hosts_hello *hello, const tdm_challenge *challenge, const tdm_secret *secret) {
    unsigned char proof[TDM_MAC_BYTES];
    prove_hello(proof, hello, challenge, secret);
    if (memcmp(hello->magic, magic, sizeof(magic)) != 0 || !tdm__mac_equal(proof, hello->proof)) return false;
    hello->self.name[TDM_PEER_NAME - 1] = '\0';
    hello->failure[TDM_MEETING_TEXT - 1] = '\0';
    return true;
}

static void prove_answer(unsigned char out[TDM_MAC_BYTES], const tdm_hosts_answer *answer, const tdm_hosts_hello *hello,
                         const tdm_secret *secret) {
    const tdm_mac_part parts[] = {
        {"answer", 6}, {hello->nonce, TDM_NONCE_BYTES}, {answer, offsetof(tdm_hosts_answer, proof)}};
    tdm__mac(out, secret, parts, 3);
}

void tdm__answer_sign(tdm_hosts_answer *answer, const tdm_hosts_hello *hello, const tdm_secret *secret) {
    memcpy(answer->magic, magic, sizeof(magic));
    prove_answer(answer->proof, answer, hello, secret);
}

bool tdm__answer_check(tdm_hosts_answer *answer, const tdm_hosts_hello *hello, const tdm_secret *secret) {
    unsigned char proof[TDM_MAC_BYTES];
    prove_answer(proof, answer, hello, secret);
    if (memcmp(answer->magic, magic, sizeof(magic)) != 0 || !tdm__mac_equal(proof, answer->proof)) return false;
    answer->text[TDM_MEETING_TEXT - 1] = '\0';
    return true;
}
