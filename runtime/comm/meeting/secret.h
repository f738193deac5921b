/* A shared secret, with which ranks prove to one another that they belong to the same job. */
#ifndef TDM_COMM_MEETING_SECRET_H
#define TDM_COMM_MEETING_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include <tandem/host.h>

enum { TDM_MAC_BYTES = 32, TDM_NONCE_BYTES = 32, TDM_SECRET_BYTES = 256 };

typedef struct tdm_secret {
    unsigned char key[TDM_SECRET_BYTES];
    size_t bytes; /* 0: there is none; anyone who reaches the port may join */
} tdm_secret;

/* Reads the secret from the file that TANDEM_SECRET_FILE names, or from TANDEM_SECRET. Blanks and line ends around it
 * do not count. TDM_E_USAGE if it cannot be read, is empty or too long, or if others may read the file. */
tdm_status tdm__secret_read(tdm_secret *out);

typedef struct tdm_mac_part {
    const void *data;
    size_t bytes;
} tdm_mac_part;
/* HMAC-SHA-256 (RFC 2104) of the parts, one after another. */
void tdm__mac(unsigned char out[TDM_MAC_BYTES], const tdm_secret *secret, const tdm_mac_part *part, int count);
/* Takes the same time wherever they differ. */
bool tdm__mac_equal(const unsigned char a[TDM_MAC_BYTES], const unsigned char b[TDM_MAC_BYTES]);
/* Random bytes of the system, which nobody can guess. */
tdm_status tdm__nonce(unsigned char out[TDM_NONCE_BYTES]);

#endif
