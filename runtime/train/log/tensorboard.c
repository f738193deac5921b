#include "runtime/train/log/tensorboard.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"

/* ---- protocol buffers: fields of the messages that are written, as tag bytes (number << 3 | wire type) ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
#define TAG(number, type) ((number) << 3 | (type))
enum {
    EVENT_WALL_TIME = TAG(1, FIXED64),
    EVENT_STEP = TAG(2, VARINT),
    EVENT_FILE_VERSION = TAG(3, BYTES),
    EVENT_SUMMARY = TAG(5, BYTES),
    EVENT_SESSION_LOG = TAG(7, BYTES),
    SESSION_STATUS = TAG(1, VARINT), /* 1: START */
    SUMMARY_VALUE = TAG(1, BYTES),
    VALUE_TAG = TAG(1, BYTES),
    VALUE_SIMPLE = TAG(2, FIXED32),
};

/* Larger than the largest event: TDM_SCALARS_MAX values of at most 72 bytes each, and the head. */
enum { EVENT_BYTES = 1024 };

typedef struct message {
    unsigned char bytes[EVENT_BYTES];
    size_t count;
} message;

static void put_raw(message *m, const void *bytes, size_t count) {
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
}

/* Numbers are stored from the lowest byte on, which is how the platforms that tandem runs on have them. */
static void put_tag(message *m, int tag) {
    const unsigned char byte = (unsigned char)tag;
    put_raw(m, &byte, 1);
}

static void put_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_tag(m, (int)(value & 0x7f) | 0x80);
    put_tag(m, (int)value);
}

static void put_bytes(message *m, int tag, const void *bytes, size_t count) {
    put_tag(m, tag);
    put_varint(m, count);
    put_raw(m, bytes, count);
}

static message begin_event(const tdm_tensorboard *board, int64_t step) {
    message m = {.count = 0};
    const double seconds = (double)tdm__host_ns(board->host, TDM_CLOCK_UTC) * 1e-9;
    put_tag(&m, EVENT_WALL_TIME);
    put_raw(&m, &seconds, sizeof(seconds));
    put_tag(&m, EVENT_STEP);
    put_varint(&m, (uint64_t)step);
    return m;
}

/* ---- records: length, its checksum, the bytes, their checksum ---- */

/* CRC-32C (Castagnoli), bit by bit: an event has a few hundred bytes. */
static uint32_t crc32c(const unsigned char *bytes, size_t count) {
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (UINT32_C(0x82f63b78) & (0 - (crc & 1)));
    }
    return ~crc;
}

/* Rotated and shifted, as TFRecord does, so that a checksum over checksums stays useful. */
static uint32_t masked_crc(const void *bytes, size_t count) {
    uint32_t crc = crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static tdm_status add_record(tdm_tensorboard *board, const message *event) {
    const uint64_t length = event->count;
    const uint32_t head = masked_crc(&length, sizeof(length)), tail = masked_crc(event->bytes, event->count);
    tdm_text record;
    tdm__text_init(&record, board->file.host);
    tdm__text_add(&record, (const char *)&length, sizeof(length));
    tdm__text_add(&record, (const char *)&head, sizeof(head));
    tdm__text_add(&record, (const char *)event->bytes, event->count);
    tdm__text_add(&record, (const char *)&tail, sizeof(tail));
    return tdm__metrics_add(&board->file, &record);
}

/* ---- the file ---- */

/* events.out.tfevents.<seconds>.<host>.tandem. TensorBoard reads files in the order of their names, so a run that
 * continues within the same second takes the next one. */
static void name_file(tdm_tensorboard *board) {
    char host[65] = "";
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') snprintf(host, sizeof(host), "localhost");
    for (char *at = host; *at != '\0'; at++)
        if (*at == '/') *at = '_';
    for (long long seconds = tdm__host_ns(board->host, TDM_CLOCK_UTC) / 1000000000;; seconds++) {
        snprintf(board->name, sizeof(board->name), "events.out.tfevents.%010lld.%s.tandem", seconds, host);
        if (!tdm__file_is_there(&board->folder, board->name)) return;
    }
}

/* Says which version of the format follows, and that steps after `step` are made now, whatever earlier files say. */
static tdm_status add_head(tdm_tensorboard *board, int64_t step) {
    static const char version[] = "brain.Event:2";
    message event = begin_event(board, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof(version) - 1);
    TDM_TRY(add_record(board, &event));
    if (step == 0) return TDM_OK;
    message log = {.count = 0};
    put_tag(&log, SESSION_STATUS);
    put_varint(&log, 1);
    event = begin_event(board, step + 1);
    put_bytes(&event, EVENT_SESSION_LOG, log.bytes, log.count);
    return add_record(board, &event);
}

tdm_status tdm__tensorboard_open(tdm_tensorboard *board, const tdm_host *host, const tdm_file_ops *ops,
                                 const tdm_folder *dir, tdm_zone *zone, int64_t step) {
    *board = (tdm_tensorboard){.host = host, .file = {.fd = -1}, .folder = {.fd = -1}};
    TDM_TRY(tdm__folder_enter(&board->folder, zone, ops, dir, TDM_TENSORBOARD));
    name_file(board);
    TDM_TRY(tdm__metrics_open(&board->file, host, ops, &board->folder, board->name));
    return add_head(board, step);
}

tdm_status tdm__tensorboard_add(tdm_tensorboard *board, int64_t step, const tdm_scalar *scalars, int count) {
    if (board->file.fd < 0) return TDM_OK;
    message event = begin_event(board, step), summary = {.count = 0};
    for (int i = 0; i < count && i < TDM_SCALARS_MAX; i++) {
        message value = {.count = 0};
        const float number = (float)scalars[i].value;
        put_bytes(&value, VALUE_TAG, scalars[i].tag, strnlen(scalars[i].tag, 63));
        put_tag(&value, VALUE_SIMPLE);
        put_raw(&value, &number, sizeof(number));
        put_bytes(&summary, SUMMARY_VALUE, value.bytes, value.count);
    }
    put_bytes(&event, EVENT_SUMMARY, summary.bytes, summary.count);
    return add_record(board, &event);
}

void tdm__tensorboard_close(tdm_tensorboard *board) {
    tdm__metrics_close(&board->file);
    tdm__folder_close(&board->folder);
}
