#include "runtime/comm/greeting.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char magic[8] = "tdmmeet3";

bool tdm__hello_send(int to, tdm_hello *hello) {
    memcpy(hello->magic, magic, sizeof(magic));
    return send(to, hello, sizeof(*hello), MSG_NOSIGNAL) == (ssize_t)sizeof(*hello);
}

bool tdm__hello_receive(int from, tdm_hello *hello) {
    if (recv(from, hello, sizeof(*hello), 0) != (ssize_t)sizeof(*hello)) return false;
    hello->failure[TDM_REASON_TEXT - 1] = '\0';
    return memcmp(hello->magic, magic, sizeof(magic)) == 0;
}

bool tdm__answer_send(int to, tdm_answer *answer, int fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = answer, .iov_len = sizeof(*answer)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memcpy(answer->magic, magic, sizeof(magic));
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*answer);
}

bool tdm__answer_receive(int from, tdm_answer *answer, int *fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = answer, .iov_len = sizeof(*answer)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    *fd = -1;
    const ssize_t bytes = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    if (bytes == (ssize_t)sizeof(*answer) && memcmp(answer->magic, magic, sizeof(magic)) == 0) {
        answer->refusal[TDM_REASON_TEXT - 1] = '\0';
        return true;
    }
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return false;
}
