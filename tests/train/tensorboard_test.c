/* TensorBoard's event files, read back byte by byte: records, checksums, fields. tensorboard_oracle.py compares with
 * TensorBoard itself. */
#include <errno.h>

#include "runtime/base/status.h"
#include "runtime/train/log/tensorboard.h"
#include "tests/ckpt/ckpt_support.h"

static char dir[256];
static tdm_zone zone;
static tdm_folder folder;

static void begin(void) {
    test_folder_make(dir);
    tdm__zone_init(&zone, tdm_host_default());
    CHECK_OK(tdm__folder_open(&folder, &zone, NULL, dir, TDM_E_IO));
}

static void end(void) {
    tdm__folder_close(&folder);
    tdm__zone_deinit(&zone);
    test_folder_remove(dir);
}

static char *read_board(const tdm_tensorboard *board, size_t *size) {
    char path[600];
    snprintf(path, sizeof(path), "%s/" TDM_TENSORBOARD "/%s", dir, board->name);
    return support_read(path, size);
}

/* ---- reading records ---- */

/* By a table, not as the writer does. */
static uint32_t crc32c_of(const void *bytes, size_t count) {
    static uint32_t table[256];
    uint32_t crc = 0xffffffffu;
    for (uint32_t n = 0; n < 256 && table[255] == 0; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++) c = (c & 1) != 0 ? 0x82f63b78u ^ c >> 1 : c >> 1;
        table[n] = c;
    }
    for (size_t i = 0; i < count; i++) crc = table[(crc ^ ((const unsigned char *)bytes)[i]) & 0xff] ^ crc >> 8;
    return crc ^ 0xffffffffu;
}

static uint32_t masked(const void *bytes, size_t count) {
    uint32_t crc = crc32c_of(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

typedef struct {
    double wall_time;
    uint64_t step;
    char version[32], tag[TDM_SCALARS_MAX][64];
    bool starts;
    float value[TDM_SCALARS_MAX];
    int scalars;
} event;

typedef struct {
    const unsigned char *at, *end;
} reader;

static uint64_t varint(reader *r) {
    uint64_t value = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        value |= (uint64_t)(*r->at & 0x7f) << shift;
        if ((*r->at++ & 0x80) == 0) break;
    }
    return value;
}

static reader part_of(reader *r) {
    size_t length = (size_t)varint(r);
    CHECK(length <= (size_t)(r->end - r->at));
    reader part = {r->at, r->at + length};
    r->at += length;
    return part;
}

static void read_value(reader value, event *out) {
    int i = out->scalars++;
    REQUIRE(i < TDM_SCALARS_MAX);
    CHECK_INT(*value.at++, 0x0a);
    reader tag = part_of(&value);
    snprintf(out->tag[i], sizeof(out->tag[i]), "%.*s", (int)(tag.end - tag.at), (const char *)tag.at);
    CHECK_INT(*value.at++, 0x15);
    CHECK(value.end - value.at == 4);
    memcpy(&out->value[i], value.at, 4);
}

static void read_summary(reader summary, event *out) {
    while (summary.at < summary.end) {
        CHECK_INT(*summary.at++, 0x0a);
        read_value(part_of(&summary), out);
    }
}

static event read_event(reader r) {
    event out = {.step = 0};
    while (r.at < r.end) {
        int tag = *r.at++;
        if (tag == 0x09) {
            memcpy(&out.wall_time, r.at, 8);
            r.at += 8;
        } else if (tag == 0x10) {
            out.step = varint(&r);
        } else {
            reader part = part_of(&r);
            if (tag == 0x1a)
                snprintf(out.version, sizeof(out.version), "%.*s", (int)(part.end - part.at), (const char *)part.at);
            if (tag == 0x3a) out.starts = part.end - part.at == 2 && part.at[0] == 0x08 && part.at[1] == 1;
            if (tag == 0x2a) read_summary(part, &out);
            CHECK(tag == 0x1a || tag == 0x3a || tag == 0x2a);
        }
    }
    return out;
}

/* The events of a file; returns how many there are. */
static int read_events(const tdm_tensorboard *board, event *out, int most) {
    size_t size, at = 0;
    int count = 0;
    char *bytes = read_board(board, &size);
    while (bytes != NULL && at + 12 <= size && count < most) {
        uint64_t length;
        uint32_t head, tail;
        memcpy(&length, bytes + at, 8);
        memcpy(&head, bytes + at + 8, 4);
        CHECK(head == masked(bytes + at, 8));
        if (length > size - at - 16) break;
        memcpy(&tail, bytes + at + 12 + length, 4);
        CHECK(tail == masked(bytes + at + 12, (size_t)length));
        const unsigned char *body = (const unsigned char *)bytes + at + 12;
        out[count++] = read_event((reader){body, body + length});
        at += 16 + (size_t)length;
    }
    CHECK(bytes != NULL && at == size);
    free(bytes);
    return count;
}

/* ---- the tests ---- */

static const tdm_scalar train[] = {{"train/loss", 0.1}, {"train/lr", 1e-3}};
static const tdm_scalar eval[] = {{"eval/loss", 2.5}};

TEST(the_checksum_is_crc32c) {
    CHECK(crc32c_of("123456789", 9) == 0xe3069283u);
}

TEST(what_is_written) {
    event e[8];
    tdm_tensorboard board;
    begin();
    CHECK_OK(tdm__tensorboard_open(&board, tdm_host_default(), &tdm__file_system, &folder, &zone, 0));
    CHECK_OK(tdm__tensorboard_add(&board, 1, train, 2));
    CHECK_OK(tdm__tensorboard_add(&board, INT64_C(1) << 40, eval, 1));
    CHECK_HAS(board.name, "events.out.tfevents.");
    tdm__tensorboard_close(&board);
    REQUIRE(read_events(&board, e, 8) == 3);
    CHECK_TEXT(e[0].version, "brain.Event:2");
    CHECK(e[0].scalars == 0 && e[0].wall_time > 1.6e9 && !e[0].starts);
    CHECK(e[1].step == 1 && e[1].scalars == 2 && e[1].value[0] == 0.1f && e[1].value[1] == 1e-3f);
    CHECK_TEXT(e[1].tag[0], "train/loss");
    CHECK_TEXT(e[1].tag[1], "train/lr");
    CHECK(e[2].step == (uint64_t)1 << 40 && e[2].scalars == 1 && e[2].value[0] == 2.5f);
    end();
}

/* A run that continues makes a file of its own, behind the others, and says from which step on it counts. */
TEST(a_run_that_continues) {
    event e[4];
    tdm_tensorboard first, second;
    begin();
    CHECK_OK(tdm__tensorboard_open(&first, tdm_host_default(), &tdm__file_system, &folder, &zone, 0));
    tdm__tensorboard_close(&first);
    CHECK_OK(tdm__tensorboard_open(&second, tdm_host_default(), &tdm__file_system, &folder, &zone, 300));
    tdm__tensorboard_close(&second);
    CHECK(strcmp(first.name, second.name) < 0);
    CHECK_INT(read_events(&first, e, 4), 1);
    REQUIRE(read_events(&second, e, 4) == 2);
    CHECK(e[1].starts && e[1].step == 301);
    end();
}

static ssize_t refuse(void *user, int fd, const void *bytes, size_t count, off_t offset) {
    if (!*(const bool *)user) return tdm__file_system.pwrite(NULL, fd, bytes, count, offset);
    errno = ENOSPC;
    return -1;
}

/* A full disk ends nothing, and what waited is written when there is room. */
TEST(a_full_disk) {
    event e[8];
    tdm_tensorboard board;
    support_host host;
    bool is_full = false;
    tdm_file_ops disk = tdm__file_system;
    begin();
    support_host_init(&host);
    disk.pwrite = refuse;
    disk.user = &is_full;
    CHECK_OK(tdm__tensorboard_open(&board, &host.host, &disk, &folder, &zone, 0));
    is_full = true;
    CHECK_OK(tdm__tensorboard_add(&board, 1, train, 2));
    CHECK_OK(tdm__tensorboard_add(&board, 2, train, 2));
    is_full = false;
    CHECK_OK(tdm__tensorboard_add(&board, 3, train, 2));
    tdm__tensorboard_close(&board);
    REQUIRE(read_events(&board, e, 8) == 4);
    for (uint64_t i = 1; i <= 3; i++) CHECK(e[i].step == i);
    end();
}

TEST(nothing_is_open) {
    tdm_tensorboard board = {.file = {.fd = -1}, .folder = {.fd = -1}};
    CHECK_OK(tdm__tensorboard_add(&board, 1, train, 2));
    tdm__tensorboard_close(&board);
}

TEST_MAIN(RUN(the_checksum_is_crc32c); RUN(what_is_written); RUN(a_run_that_continues); RUN(a_full_disk);
          RUN(nothing_is_open);)
