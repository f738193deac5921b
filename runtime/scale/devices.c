/* The table of devices. */
#include <math.h>

#include "runtime/scale/scale.h"

#define TDM_SCALE_DEVICE(name_, gpu, f32, tf32, bf16, gigabytes, of_f32, of_tf32, of_bf16, of_memory, us, jitter_, \
                         rate_, latency_, cost_)                                                                   \
    {.name = #name_,                                                                                               \
     .is_gpu = gpu,                                                                                                \
     .flops = {(f32)*1e12, (tf32)*1e12, (bf16)*1e12},                                                              \
     .memory = (gigabytes)*1e9,                                                                                    \
     .share = {of_f32, of_tf32, of_bf16},                                                                          \
     .memory_share = of_memory,                                                                                    \
     .launch = (us)*1e-6,                                                                                          \
     .jitter = jitter_,                                                                                            \
     .local = {(rate_)*1e9, (latency_)*1e-6, (cost_)*1e-9}},
static const tdm_scale_device devices[] = {
#include "runtime/scale/devices.def"
};
#undef TDM_SCALE_DEVICE
static const size_t device_count = sizeof(devices) / sizeof(devices[0]);

const tdm_scale_device *tdm__scale_device(const char *name) {
    for (size_t i = 0; i < device_count; i++)
        if (tdm__text_same(devices[i].name, name)) return &devices[i];
    return NULL;
}

void tdm__scale_device_names(tdm_text *out) {
    for (size_t i = 0; i < device_count; i++) tdm__text_printf(out, "%s%s", i > 0 ? ", " : "", devices[i].name);
}

const tdm_scale_device *tdm__scale_usual_device(bool is_gpu) {
    return tdm__scale_device(is_gpu ? "h100" : "cpu");
}
