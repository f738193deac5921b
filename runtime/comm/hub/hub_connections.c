/* Frames over one connection of the hub. Nothing here waits. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/comm/hub/hub_private.h"

bool tdm__connection_flush(tdm_connection *c) {
    size_t done = 0;
    while (done < c->out_bytes) {
        const ssize_t n = send(c->fd, c->out + done, c->out_bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) return false;
        if (n < 0) break;
        done += (size_t)n;
    }
    memmove(c->out, c->out + done, c->out_bytes - done);
    c->out_bytes -= done;
    return true;
}

bool tdm__connection_send(tdm_connection *c, tdm_frame_kind kind, const void *data, size_t bytes) {
    const tdm_frame frame = {.kind = kind, .bytes = (uint32_t)bytes};
    if (c->fd < 0) return true;
    /* A heartbeat says nothing that the next one does not say. */
    if (kind == TDM_FRAME_BEAT && c->out_bytes > 0) return tdm__connection_flush(c);
    if (c->out_bytes + sizeof(frame) + bytes > sizeof(c->out)) return false;
    memcpy(c->out + c->out_bytes, &frame, sizeof(frame));
    if (bytes > 0) memcpy(c->out + c->out_bytes + sizeof(frame), data, bytes);
    c->out_bytes += sizeof(frame) + bytes;
    return tdm__connection_flush(c);
}

/* The frames that have arrived whole. False: nonsense. */
static bool take_frames(tdm_connection *c, void (*on_frame)(tdm_hub *, int, tdm_frame, const void *), tdm_hub *hub,
                        int from) {
    size_t at = 0;
    tdm_frame frame;
    while (c->in_bytes - at >= sizeof(frame)) {
        memcpy(&frame, c->in + at, sizeof(frame));
        if (frame.bytes > sizeof(c->in) - sizeof(frame)) return false;
        if (c->in_bytes - at < sizeof(frame) + frame.bytes) break;
        on_frame(hub, from, frame, c->in + at + sizeof(frame));
        at += sizeof(frame) + frame.bytes;
    }
    memmove(c->in, c->in + at, c->in_bytes - at);
    c->in_bytes -= at;
    return true;
}

bool tdm__connection_receive(tdm_connection *c, void (*on_frame)(tdm_hub *, int, tdm_frame, const void *), tdm_hub *hub,
                             int from) {
    const ssize_t n = recv(c->fd, c->in + c->in_bytes, sizeof(c->in) - c->in_bytes, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    c->in_bytes += (size_t)n;
    c->silent_ns = 0;
    return take_frames(c, on_frame, hub, from);
}
