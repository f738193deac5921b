/* See fake_store.h. Like PyTorch's own server without libuv it reads a request to its end before it looks at another. */
#include "tests/comm/torch/fake_store.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* GIVE_UP_S: no test leaves a request unfinished on purpose for longer. */
enum { GIVE_UP_S = 20 };
static const uint32_t magic = 0x3C85F7CE;

/* ---- bytes ---- */

static bool take(fake_visitor *v, void *out, size_t bytes) {
    return bytes == 0 || recv(v->fd, out, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static bool give(fake_visitor *v, const void *data, size_t bytes) {
    return send(v->fd, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool give_byte(fake_visitor *v, unsigned char byte) {
    return give(v, &byte, 1);
}

static bool give_number(fake_visitor *v, uint64_t number) {
    return give(v, &number, sizeof(number));
}

/* PyTorch throws, and drops the visitor, where no memory is that large; it reads on where some is. */
static bool take_text(fake_store *fake, fake_visitor *v, void *out, size_t room, size_t *bytes) {
    uint64_t length;
    if (!take(v, &length, sizeof(length))) return false;
    if (length >= room) {
        if (length < UINT64_C(1) << 47) fake->stalls++;
        return false;
    }
    *bytes = (size_t)length;
    return take(v, out, *bytes);
}

static bool take_key(fake_store *fake, fake_visitor *v, char key[FAKE_KEY_TEXT]) {
    size_t bytes;
    memset(key, 0, FAKE_KEY_TEXT);
    return take_text(fake, v, key, FAKE_KEY_TEXT, &bytes);
}

static bool take_one_key(fake_store *fake, fake_visitor *v, char key[FAKE_KEY_TEXT]) {
    uint64_t keys;
    return take(v, &keys, sizeof(keys)) && keys == 1 && take_key(fake, v, key);
}

/* ---- requests: false drops the visitor ---- */

const fake_entry *fake_store_find(const fake_store *fake, const char *key) {
    for (int i = 0; i < fake->entries; i++)
        if (strcmp(fake->entry[i].key, key) == 0) return &fake->entry[i];
    return NULL;
}

static void wake_waiting(fake_store *fake, const char *key) {
    for (int i = 0; i < fake->visitors; i++) {
        if (strcmp(fake->visitor[i].waits_for, key) != 0) continue;
        fake->visitor[i].waits_for[0] = '\0';
        fake->waiting--;
        (void)give_byte(&fake->visitor[i], 0);
    }
}

static bool on_set(fake_store *fake, fake_visitor *v) {
    fake_entry new;
    if (!take_key(fake, v, new.key) || !take_text(fake, v, new.value, sizeof(new.value), &new.bytes)) return false;
    if (fake->fault == FAULT_CLOSE_AT_SET) return false;
    if (fake->fault == FAULT_IGNORE_SET) return true;
    const fake_entry *old = fake_store_find(fake, new.key);
    if (old == NULL && fake->entries == FAKE_KEYS) return false;
    fake->entry[old != NULL ? old - fake->entry : fake->entries++] = new;
    wake_waiting(fake, new.key);
    return true;
}

static bool on_get(fake_store *fake, fake_visitor *v) {
    char key[FAKE_KEY_TEXT];
    const fake_entry *found = take_key(fake, v, key) ? fake_store_find(fake, key) : NULL;
    if (found == NULL || fake->fault == FAULT_CLOSE_AT_GET) return false;
    if (fake->fault == FAULT_SILENT_AT_GET) return true;
    if (fake->fault == FAULT_HUGE_VALUE) return give_number(v, (UINT64_C(1) << 63) + 1) && give(v, "x", 1);
    if (!give_number(v, found->bytes)) return false;
    if (fake->fault != FAULT_SHORT_VALUE) return found->bytes == 0 || give(v, found->value, found->bytes);
    (void)give(v, found->value, found->bytes / 2);
    return false;
}

static bool on_check(fake_store *fake, fake_visitor *v) {
    char key[FAKE_KEY_TEXT];
    return take_one_key(fake, v, key) && give_byte(v, fake_store_find(fake, key) == NULL);
}

static bool on_wait(fake_store *fake, fake_visitor *v) {
    char key[FAKE_KEY_TEXT];
    if (!take_one_key(fake, v, key) || fake->fault == FAULT_CLOSE_AT_WAIT) return false;
    if (fake->fault == FAULT_WAIT_CANCELLED) return give_byte(v, 1);
    if (fake_store_find(fake, key) != NULL) return give_byte(v, 0);
    memcpy(v->waits_for, key, sizeof(key));
    fake->waiting++;
    return true;
}

static bool on_hello(fake_visitor *v, unsigned char request) {
    uint32_t number;
    v->is_known = request == 0 && take(v, &number, sizeof(number)) && number == magic;
    return v->is_known;
}

static bool on_script(const fake_store *fake, fake_visitor *v) {
    unsigned char whatever[64];
    return recv(v->fd, whatever, sizeof(whatever), 0) > 0 && give(v, fake->script, fake->script_bytes) && !fake->closes;
}

static bool serve(fake_store *fake, fake_visitor *v) {
    unsigned char request, whatever[64];
    if (fake->kind == FAKE_SCRIPT) return on_script(fake, v);
    if (!take(v, &request, sizeof(request))) return false;
    if (fake->kind == FAKE_VALIDATED && !v->is_known) return on_hello(v, request);
    if (fake->kind == FAKE_VALIDATED) request--;
    if (fake->kind == FAKE_PATIENT && request == 0 && !v->is_known)
        return recv(v->fd, whatever, sizeof(whatever), 0) > 0;
    v->is_known = true;
    switch (request) {
    case 0:
        return on_set(fake, v);
    case 2:
        return on_get(fake, v);
    case 4:
        return on_check(fake, v);
    case 5:
        return on_wait(fake, v);
    case 6:
        return give_number(v, (uint64_t)fake->entries);
    default:
        return false;
    }
}

/* ---- the thread ---- */

static void admit(fake_store *fake) {
    const struct timeval most = {.tv_sec = GIVE_UP_S};
    const int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (fake->visitors == FAKE_VISITORS) {
        close(fd);
        return;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    fake->visitor[fake->visitors++] = (fake_visitor){.fd = fd};
}

static void drop(fake_store *fake, int i) {
    if (fake->visitor[i].waits_for[0] != '\0') fake->waiting--;
    close(fake->visitor[i].fd);
    fake->visitor[i] = fake->visitor[--fake->visitors];
}

static void *run(void *user) {
    fake_store *fake = user;
    for (;;) {
        struct pollfd entry[FAKE_VISITORS + 2] = {{.fd = fake->wake[0], .events = POLLIN},
                                                  {.fd = fake->listener, .events = POLLIN}};
        const int visitors = fake->visitors;
        for (int i = 0; i < visitors; i++) entry[2 + i] = (struct pollfd){.fd = fake->visitor[i].fd, .events = POLLIN};
        if (poll(entry, (nfds_t)visitors + 2, -1) < 0) continue;
        if (entry[0].revents != 0) break;
        /* From the end: `drop` moves the last one into the gap. */
        for (int i = visitors - 1; i >= 0; i--)
            if (entry[2 + i].revents != 0 && !serve(fake, &fake->visitor[i])) drop(fake, i);
        if (entry[1].revents != 0) admit(fake);
    }
    while (fake->visitors > 0) drop(fake, 0);
    return NULL;
}

bool fake_store_bind(fake_store *fake) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *address = fake->is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t bytes = fake->is_v6 ? sizeof(v6) : sizeof(v4);
    fake->listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fake->listener >= 0 && bind(fake->listener, address, bytes) == 0 &&
        getsockname(fake->listener, address, &bytes) == 0 && pipe(fake->wake) == 0) {
        fake->port = ntohs(fake->is_v6 ? v6.sin6_port : v4.sin_port);
        return true;
    }
    if (fake->listener >= 0) close(fake->listener);
    return false;
}

void fake_store_listen(fake_store *fake) {
    (void)listen(fake->listener, FAKE_VISITORS);
    (void)pthread_create(&fake->thread, NULL, run, fake);
}

void fake_store_close(fake_store *fake) {
    (void)!write(fake->wake[1], "", 1);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    close(fake->wake[0]);
    close(fake->wake[1]);
}
