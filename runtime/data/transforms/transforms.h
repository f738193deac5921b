/* The steps of data.transform for pictures: a table, and how a picture goes through it.
 *
 * A step that draws takes its numbers from Philox, keyed by the job's seed, with the epoch, the sample's number and the
 * step's position in the list as the counter. So neither the mode, nor the rank, nor the number of loader threads
 * changes a pixel. Formulas are torchvision's (0.2x, transforms.v1), for PIL images. */
#ifndef TDM_DATA_TRANSFORMS_TRANSFORMS_H
#define TDM_DATA_TRANSFORMS_TRANSFORMS_H

#include <tandem/job.h>

#include "runtime/base/text/text.h"
#include "runtime/data/transforms/draws.h"
#include "runtime/image/canvas.h"

/* Height and width; 0: the picture's own, or unknown. */
typedef struct tdm_picture_size {
    int64_t height, width;
} tdm_picture_size;

typedef struct tdm_transform_def {
    const char *name, *doc, *doc_zh;
    const tdm_field *rows; /* of a tdm_transform_step; end with a NULL key; NULL: it has no keys */
    /* In training, and in evaluation, where nothing is drawn. NULL: nothing happens; for mixup and cutmix, which come
     * after all other steps, see mixing.h. */
    tdm_status (*train)(const tdm_transform_step *step, tdm_canvas *canvas, tdm_draws *draws);
    tdm_status (*evaluate)(const tdm_transform_step *step, tdm_canvas *canvas);
    /* The size of the result. NULL: that of the picture. */
    tdm_picture_size (*size)(const tdm_transform_step *step, tdm_picture_size before, bool training);
    bool only_frames; /* it does nothing but crop and resize, which a framing can write down */
    const char *(*fault)(const tdm_transform_step *step); /* a clause about keys that contradict each other; or NULL */
} tdm_transform_def;

/* By tdm_transform_kind. */
extern const tdm_transform_def *const tdm__transforms[TDM_TRANSFORM_KINDS];
int tdm__transform_find(const char *name); /* -1: there is none */

/* Which picture it is. */
typedef struct tdm_picture_key {
    uint64_t seed;
    int64_t epoch, sample;
    bool training;
} tdm_picture_key;
/* Runs the first steps as far as the canvas's open framing can write them down. */
void tdm__transform_frame(const tdm_transform_spec *spec, tdm_canvas *canvas, const tdm_picture_key *key);
/* Runs the steps after canvas->steps_done. TDM_E_DATA if a picture cannot be changed so, for example
 * because it is too small for the crop. */
tdm_status tdm__transform_picture(const tdm_transform_spec *spec, tdm_canvas *canvas, const tdm_picture_key *key);
/* How many steps change pictures: all but mixup and cutmix, which take any samples. NULL: 0. */
int tdm__transform_picture_steps(const tdm_transform_spec *spec);
/* The size of all results; 0 where it depends on the picture. */
tdm_picture_size tdm__transform_size(const tdm_transform_spec *spec, bool training);
/* Prints a step as YAML flow, `random_crop: {height: 32, width: 32, padding: 4}` in braces, or as JSON; keys that have
 * their defaults are left out. */
void tdm__transform_print(const tdm_transform_step *step, bool json, tdm_text *out);

#endif
