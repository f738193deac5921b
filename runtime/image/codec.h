/* Finding what reads and writes pictures: the module `image`. */
#ifndef TDM_IMAGE_CODEC_H
#define TDM_IMAGE_CODEC_H

#include <tandem/host.h>
#include <tandem/sys/image.h>

/* Limits for pictures to train on: those of Pillow's warning for the pixels. */
#define TDM_IMAGE_LIMITS ((tdm_image_limits){.pixels = 89478485, .scans = 100, .memory = (size_t)1 << 30})

/* *out belongs to the module, which is never closed. `module_path` as for tdm__module_find. TDM_E_UNSUPPORTED says why
 * there is none, and what to install. */
tdm_status tdm__codec_open(const tdm_image_ops **out, const tdm_host *host, const char *module_path);
/* Writes a picture to a new file. */
tdm_status tdm__codec_write(const tdm_image_ops *codec, const tdm_host *host, const tdm_pixels *pixels,
                            const char *path);

#endif
