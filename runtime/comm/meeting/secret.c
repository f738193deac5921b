/* See secret.h. SHA-256 is libmd's. */
#include "runtime/comm/meeting/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/env.h"

/* ---- reading it ---- */

static tdm_status take(tdm_secret *out, const char *text, size_t bytes, const char *from) {
    while (bytes > 0 && isspace((unsigned char)text[bytes - 1])) bytes--;
    while (bytes > 0 && isspace((unsigned char)*text)) text++, bytes--;
    if (bytes == 0 || bytes > TDM_SECRET_BYTES)
        TDM_FAIL(TDM_E_USAGE, "%s: the secret must have 1 to %d bytes, got %zu", from, TDM_SECRET_BYTES, bytes);
    memcpy(out->key, text, bytes);
    out->bytes = bytes;
    return TDM_OK;
}

static tdm_status read_open_file(tdm_secret *out, int fd, const char *path) {
    char text[2 * TDM_SECRET_BYTES];
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        TDM_FAIL(TDM_E_USAGE, "TANDEM_SECRET_FILE: '%s' is not a file", path);
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        TDM_FAIL(TDM_E_USAGE, "TANDEM_SECRET_FILE: other users may use '%s'; allow only its owner: chmod 600", path);
    const ssize_t bytes = read(fd, text, sizeof(text));
    if (bytes < 0) TDM_FAIL(TDM_E_USAGE, "TANDEM_SECRET_FILE: cannot read '%s': %s", path, strerrordesc_np(errno));
    return take(out, text, (size_t)bytes, path);
}

tdm_status tdm__secret_read(tdm_secret *out) {
    const char *path = tdm__env(TDM_ENV_SECRET_FILE), *text = tdm__env(TDM_ENV_SECRET);
    *out = (tdm_secret){.bytes = 0};
    if (path == NULL || path[0] == '\0')
        return text != NULL && text[0] != '\0' ? take(out, text, strlen(text), "TANDEM_SECRET") : TDM_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) TDM_FAIL(TDM_E_USAGE, "TANDEM_SECRET_FILE: cannot open '%s': %s", path, strerrordesc_np(errno));
    const tdm_status status = read_open_file(out, fd, path);
    close(fd);
    return status;
}

/* ---- proving it ---- */

static void begin(SHA2_CTX *hash, const unsigned char block[SHA256_BLOCK_LENGTH], unsigned char mask) {
    unsigned char masked[SHA256_BLOCK_LENGTH];
    for (int i = 0; i < SHA256_BLOCK_LENGTH; i++) masked[i] = block[i] ^ mask;
    SHA256Init(hash);
    SHA256Update(hash, masked, sizeof(masked));
}

void tdm__mac(unsigned char out[TDM_MAC_BYTES], const tdm_secret *secret, const tdm_mac_part *part, int count) {
    enum { INNER = 0x36, OUTER = 0x5C };
    unsigned char block[SHA256_BLOCK_LENGTH] = {0}, inner[SHA256_DIGEST_LENGTH];
    SHA2_CTX hash;
    if (secret->bytes > sizeof(block)) {
        SHA256Init(&hash);
        SHA256Update(&hash, secret->key, secret->bytes);
        SHA256Final(block, &hash);
    } else {
        memcpy(block, secret->key, secret->bytes);
    }
    begin(&hash, block, INNER);
    for (int i = 0; i < count; i++) SHA256Update(&hash, part[i].data, part[i].bytes);
    SHA256Final(inner, &hash);
    begin(&hash, block, OUTER);
    SHA256Update(&hash, inner, sizeof(inner));
    SHA256Final(out, &hash);
}

bool tdm__mac_equal(const unsigned char a[TDM_MAC_BYTES], const unsigned char b[TDM_MAC_BYTES]) {
    unsigned char differ = 0;
    for (int i = 0; i < TDM_MAC_BYTES; i++) differ |= a[i] ^ b[i];
    return differ == 0;
}

tdm_status tdm__nonce(unsigned char out[TDM_NONCE_BYTES]) {
    if (getrandom(out, TDM_NONCE_BYTES, 0) != TDM_NONCE_BYTES)
        TDM_FAIL(TDM_E_COMM, "random bytes: %s", strerrordesc_np(errno));
    return TDM_OK;
}
