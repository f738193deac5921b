/* Frames over one connection of the hub. Nothing here waits. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/comm/hub/hub_private.h"

bool tdm__line_flush(tdm_line *line) {
    size_t done = 0;
    while (done < line->out_bytes) {
        const ssize_t n = send(line->fd, line->out + done, line->out_bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) return false;
        if (n < 0) break;
        done += (size_t)n;
    }
    memmove(line->out, line->out + done, line->out_bytes - done);
    line->out_bytes -= done;
    return true;
}

bool tdm__line_send(tdm_line *line, tdm_frame_kind kind, const void *data, size_t bytes) {
    const tdm_frame frame = {.kind = kind, .bytes = (uint32_t)bytes};
    if (line->fd < 0) return true;
    /* A heartbeat says nothing that the next one does not say. */
    if (kind == TDM_FRAME_BEAT && line->out_bytes > 0) return tdm__line_flush(line);
    if (line->out_bytes + sizeof(frame) + bytes > sizeof(line->out)) return false;
    memcpy(line->out + line->out_bytes, &frame, sizeof(frame));
    if (bytes > 0) memcpy(line->out + line->out_bytes + sizeof(frame), data, bytes);
    line->out_bytes += sizeof(frame) + bytes;
    return tdm__line_flush(line);
}

/* The frames that have arrived whole. False: nonsense. */
static bool take_frames(tdm_line *line, void (*on_frame)(tdm_hub *, int, tdm_frame, const void *), tdm_hub *hub,
                        int from) {
    size_t at = 0;
    tdm_frame frame;
    while (line->in_bytes - at >= sizeof(frame)) {
        memcpy(&frame, line->in + at, sizeof(frame));
        if (frame.bytes > sizeof(line->in) - sizeof(frame)) return false;
        if (line->in_bytes - at < sizeof(frame) + frame.bytes) break;
        on_frame(hub, from, frame, line->in + at + sizeof(frame));
        at += sizeof(frame) + frame.bytes;
    }
    memmove(line->in, line->in + at, line->in_bytes - at);
    line->in_bytes -= at;
    return true;
}

bool tdm__line_receive(tdm_line *line, void (*on_frame)(tdm_hub *, int, tdm_frame, const void *), tdm_hub *hub,
                       int from) {
    const ssize_t n = recv(line->fd, line->in + line->in_bytes, sizeof(line->in) - line->in_bytes, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    line->in_bytes += (size_t)n;
    line->silent_ns = 0;
    return take_frames(line, on_frame, hub, from);
}
