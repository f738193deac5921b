/* A small TCPStore, in a thread of the test: as PyTorch 1.13 speaks, or as 2.2 and later do; or something that is none. */
#ifndef TEST_COMM_TORCH_FAKE_STORE_H
#define TEST_COMM_TORCH_FAKE_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAKE_VISITORS = 16, FAKE_KEYS = 8, FAKE_KEY_TEXT = 300, FAKE_VALUE_BYTES = 4096 };

typedef enum fake_kind {
    FAKE_PLAIN,     /* up to PyTorch 2.1 */
    FAKE_VALIDATED, /* since 2.2 */
    FAKE_PATIENT,   /* as FAKE_PLAIN, but says nothing about requests that it does not know */
    FAKE_SCRIPT,    /* answers `script` to whatever comes first, then closes the connection if `closes` */
} fake_kind;

/* What a FAKE_VALIDATED does wrong, once it has been greeted. */
typedef enum fake_fault {
    FAULT_NONE,
    FAULT_CLOSE_AT_SET,   /* closes the connection */
    FAULT_IGNORE_SET,     /* has no key afterwards */
    FAULT_CLOSE_AT_WAIT,  /* closes the connection */
    FAULT_CLOSE_AT_GET,   /* closes the connection */
    FAULT_SILENT_AT_GET,  /* never answers */
    FAULT_SHORT_VALUE,    /* half of it, then closes the connection */
    FAULT_HUGE_VALUE,     /* a length of 2^63 + 1 bytes */
    FAULT_WAIT_CANCELLED, /* answers 1 */
} fake_fault;

typedef struct fake_entry {
    char key[FAKE_KEY_TEXT];
    unsigned char value[FAKE_VALUE_BYTES];
    size_t bytes;
} fake_entry;

typedef struct fake_visitor {
    int fd;
    bool is_known; /* it has sent the magic number */
    char waits_for[FAKE_KEY_TEXT];
} fake_visitor;

typedef struct fake_store {
    fake_kind kind;
    fake_fault fault;
    const void *script;
    size_t script_bytes;
    bool closes, is_v6;
    int port;
    atomic_int waiting; /* visitors that wait for a key */
    atomic_int stalls;  /* how often a FAKE_PLAIN would have waited for the rest of a key, and served nobody else */
    /* its own */
    int listener, wake[2];
    pthread_t thread;
    fake_visitor visitor[FAKE_VISITORS];
    int visitors;
    fake_entry entry[FAKE_KEYS];
    int entries;
} fake_store;

/* From `kind` and the members behind it, up to is_v6. False: this machine has no such addresses. */
bool fake_store_bind(fake_store *fake); /* its port is known, but nobody listens */
void fake_store_listen(fake_store *fake);
void fake_store_close(fake_store *fake);
/* Only after the close. NULL: it has no such key, which begins with the client's "/". */
const fake_entry *fake_store_find(const fake_store *fake, const char *key);

#endif
