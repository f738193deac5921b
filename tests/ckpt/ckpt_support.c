#include "tests/ckpt/ckpt_support.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

int support_entries(const char *folder, const char *prefix) {
    int count = 0;
    struct dirent *entry;
    DIR *list = opendir(folder);
    if (list == NULL) return -1;
    while ((entry = readdir(list)) != NULL) {
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        count += !dots && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    closedir(list);
    return count;
}

bool support_exists(const char *folder, const char *name) {
    char path[512];
    struct stat about;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return lstat(path, &about) == 0;
}

void support_write(const char *path, const void *bytes, size_t count) {
    unlink(path); /* writing over it would wait for the disk on ext4 */
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

char *support_read(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    *count = 0;
    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        bytes = malloc((size_t)size + 1);
        *count = fread(bytes, 1, (size_t)size, file);
        bytes[*count] = '\0';
    }
    fclose(file);
    return bytes;
}

void support_tensor_file(const char *path, const char *header, size_t data_bytes) {
    size_t length = strlen(header);
    char *bytes = calloc(1, 8 + length + data_bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)length >> (8 * i) & 0xFF);
    memcpy(bytes + 8, header, length);
    support_write(path, bytes, 8 + length + data_bytes);
    free(bytes);
}

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    fprintf(stderr, "support: %s\n", tdm_error_message());
    exit(1);
}

void support_patch(const char *path, const char *tensor, const void *bytes, size_t count) {
    tdm_tensor_file *file;
    must(tdm__tensor_file_open(&file, tdm_host_default(), NULL, path));
    const tdm_tensor *found = tdm__tensor_file_find(file, tensor);
    FILE *out = fopen(path, "r+b");
    if (found == NULL || out == NULL || fseek(out, (long)found->file_offset, SEEK_SET) != 0 ||
        fwrite(bytes, 1, count, out) != count || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
    tdm__tensor_file_close(file);
}

void support_reseal(const char *folder) {
    tdm_manifest manifest = {.file = {{.listed = false}}};
    tdm_tensor_file *files[TDM_CKPT_TENSORS] = {NULL};
    tdm_hash128 hashes[TDM_CKPT_TENSORS][16];
    const tdm_tensor *tensors[TDM_CKPT_TENSORS] = {NULL};
    char path[512], *bytes;
    int counts[TDM_CKPT_TENSORS] = {0};
    size_t size;
    for (int part = 0; part < TDM_CKPT_FILES; part++) {
        snprintf(path, sizeof(path), "%s/%s", folder, tdm__ckpt_file_names[part]);
        bytes = support_read(path, &size);
        if (bytes == NULL) continue; /* no configuration, no average */
        manifest.file[part] = (tdm_manifest_file){.listed = true, .bytes = size, .hash = tdm__hash(bytes, size)};
        if (part < TDM_CKPT_TENSORS) {
            must(tdm__tensor_file_open(&files[part], tdm_host_default(), NULL, path));
            tensors[part] = tdm__tensor_file_get(files[part], 0);
            counts[part] = tdm__tensor_file_count(files[part]);
            for (int i = 0; i < counts[part]; i++)
                hashes[part][i] = tdm__hash(bytes + tensors[part][i].file_offset, tensors[part][i].bytes);
            manifest.file[part].tensor_hash = hashes[part];
        }
        free(bytes);
    }
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    tdm__manifest_print(&text, &manifest, tensors, counts);
    snprintf(path, sizeof(path), "%s/MANIFEST.json", folder);
    support_write(path, text.data, text.length);
    tdm__text_deinit(&text);
    for (int part = 0; part < TDM_CKPT_TENSORS; part++) tdm__tensor_file_close(files[part]);
}

static tdm_tensor tensor_of(const char *name, int dtype, int ndim, int64_t rows, int64_t columns, const void *data) {
    size_t size = dtype == TDM_ST_I64 ? 8 : 4;
    tdm_tensor tensor = {.name = name, .dtype = dtype, .ndim = ndim, .dim = {rows, columns}, .data = data};
    tensor.bytes = size * (size_t)(ndim > 0 ? rows : 1) * (size_t)(ndim > 1 ? columns : 1);
    return tensor;
}

static void fill(support_parts *p, int64_t step) {
    for (int i = 0; i < 6; i++) {
        p->weight[i] = (float)step + (float)i * 0.25f;
        p->moment[i] = -p->weight[i];
        p->moment_sq[i] = p->weight[i] * p->weight[i];
    }
    p->bias[0] = (float)step;
    p->bias[1] = 0.5f;
    p->scalar = (float)step / 3.0f;
    p->batches = step * 1000;
}

void support_parts_init(support_parts *p, int64_t step) {
    memset(p, 0, sizeof(*p));
    fill(p, step);
    p->model[0] = tensor_of("fc.weight", TDM_ST_F32, 2, 2, 3, p->weight);
    p->model[1] = tensor_of("fc.bias", TDM_ST_F32, 1, 2, 0, p->bias);
    p->model[2] = tensor_of("bn.num_batches_tracked", TDM_ST_I64, 0, 0, 0, &p->batches);
    p->model[3] = tensor_of("scale", TDM_ST_F32, 0, 0, 0, &p->scalar);
    p->optimizer[0] = tensor_of("exp_avg.fc.weight", TDM_ST_F32, 2, 2, 3, p->moment);
    p->optimizer[1] = tensor_of("exp_avg_sq.fc.weight", TDM_ST_F32, 2, 2, 3, p->moment_sq);
    p->parts = (tdm_ckpt_parts){
        .model = p->model,
        .model_count = 4,
        .optimizer = p->optimizer,
        .optimizer_count = 2,
        .state = {.step = step,
                  .epoch = 1,
                  .step_in_epoch = step % 7,
                  .samples = step * 64,
                  .seed = -5,
                  .lr = 0.1 / 3.0,
                  .schedule_step = step,
                  .mode = "ddp",
                  .replicas = 2,
                  .per_device = 32,
                  .optimizer = "adam",
                  .params_xxh3 = "00112233445566778899aabbccddeeff",
                  .eval_due = step % 2},
        .config_yaml = "mode: ddp\n",
    };
}

static bool same_tensor(const tdm_tensor_file *file, const tdm_tensor *want) {
    char got[64];
    const tdm_tensor *tensor = tdm__tensor_file_find(file, want->name);
    if (tensor == NULL || tensor->bytes != want->bytes || tensor->ndim != want->ndim || tensor->dtype != want->dtype)
        return false;
    return tdm__tensor_file_read(file, tensor, got) == TDM_OK && memcmp(got, want->data, want->bytes) == 0;
}

static bool same_state(const tdm_ckpt_state *a, const tdm_ckpt_state *b) {
    tdm_text text[2];
    for (int i = 0; i < 2; i++) {
        tdm__text_init(&text[i], tdm_host_default());
        tdm_json_out json = tdm__json_out(&text[i], " ");
        tdm__state_print(&json, NULL, i == 0 ? a : b);
    }
    bool same = strcmp(text[0].data, text[1].data) == 0 && a->lr == b->lr;
    tdm__text_deinit(&text[0]);
    tdm__text_deinit(&text[1]);
    return same;
}

bool support_holds(tdm_ckpt *ckpt, int64_t step) {
    support_parts want;
    support_parts_init(&want, step);
    const tdm_ckpt_state *state = tdm__ckpt_state(ckpt);
    bool good = state != NULL && same_state(state, &want.parts.state);
    good = good && tdm__tensor_file_count(tdm__ckpt_model(ckpt)) == 4;
    good = good && tdm__tensor_file_count(tdm__ckpt_optimizer(ckpt)) == 2;
    for (int i = 0; good && i < 4; i++) good = same_tensor(tdm__ckpt_model(ckpt), &want.model[i]);
    for (int i = 0; good && i < 2; i++) good = same_tensor(tdm__ckpt_optimizer(ckpt), &want.optimizer[i]);
    return good;
}

/* Sizes stand in front of what is given out. */
enum { FRONT = 64 };

static void *count_allocate(void *user, size_t bytes, size_t align) {
    support_host *host = user;
    (void)align; /* at most FRONT, as tandem asks for */
    char *base = aligned_alloc(FRONT, (bytes + 2 * FRONT - 1) / FRONT * FRONT);
    if (base == NULL) return NULL;
    memcpy(base, &bytes, sizeof(bytes));
    host->live += bytes;
    if (host->live > host->peak) host->peak = host->live;
    return base + FRONT;
}

static void count_release(void *user, void *pointer) {
    support_host *host = user;
    size_t bytes;
    if (pointer == NULL) return;
    char *base = (char *)pointer - FRONT;
    memcpy(&bytes, base, sizeof(bytes));
    host->live -= bytes;
    free(base);
}

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    support_host *host = user;
    size_t used = strlen(host->log);
    (void)subsystem;
    snprintf(host->log + used, sizeof(host->log) - used, "%d %s\n", (int)level, line);
}

void support_host_init(support_host *host) {
    memset(host, 0, sizeof(*host));
    host->host = (tdm_host){.size = sizeof(tdm_host),
                            .allocate = count_allocate,
                            .release = count_release,
                            .log = keep_line,
                            .log_level = TDM_LOG_INFO,
                            .user = host};
}
