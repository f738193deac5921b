/* The module `image`, see codec.h. */
#include "runtime/image/codec.h"

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/module/module.h"

tdm_status tdm__codec_open(const tdm_image_ops **out, const tdm_host *host, const char *module_path) {
    const tdm_module *module;
    tdm_module_report report;
    const char *absent = tdm__module_absent("image");
    *out = NULL;
    TDM_TRY(tdm__module_find(&module, host, "image", module_path, &report));
    if (module != NULL && module->image != NULL) {
        *out = module->image;
        return TDM_OK;
    }
    TDM_FAIL(TDM_E_UNSUPPORTED, "pictures need the module image: %s", absent[0] != '\0' ? absent : report.text);
}

static tdm_status put(void *file, const void *bytes, size_t count) {
    return tdm__out_write(file, bytes, count);
}

tdm_status tdm__codec_write(const tdm_image_ops *codec, const tdm_host *host, const tdm_pixels *pixels,
                            const char *path) {
    tdm_out_file file = {.fd = -1};
    tdm_status status;
    TDM_TRY_DONE(tdm__out_open(&file, &tdm__file_system, NULL, path, 0, NULL));
    TDM_TRY_DONE(codec->encode(host, pixels, put, &file));
    TDM_TRY_DONE(tdm__out_finish(&file));
done:
    tdm__out_discard(&file);
    return status;
}
