/* tandem/data.h - check data sets, and make small ones.
 *
 * Threads: nothing is kept between calls; any number of threads may call. Functions passed in are called on the calling
 * thread, one call at a time. */
#ifndef TANDEM_DATA_H
#define TANDEM_DATA_H

#include <tandem/graph.h>
#include <tandem/host.h>
#include <tandem/job.h>

TDM_BEGIN_DECLS

/* What the samples will be used for. All zero: any samples with class labels. */
typedef struct tdm_data_use {
    uint32_t size; /* sizeof(tdm_data_use) */
    int ndim;      /* dimensions of the model's input; 0: the shape in the files */
    int64_t input[6];
    bool float_targets;    /* the targets are floats, not class labels */
    int64_t target_width;  /* floats per target; 0: as many as the files have */
    int64_t classes;       /* labels must be below this; 0: any */
    bool has_ignore_index; /* labels may also be `ignore_index` */
    int64_t ignore_index;
    int64_t seed; /* the job's seed, for synthetic data */
    tdm_rng_profile rng_profile;
    const tdm_transform_spec *transform; /* its steps for pictures; NULL: none */
    bool evaluates;                      /* the part and the transforms of data.eval */
    /* Of a table: that trained on, whose categories, means and deviations count; NULL: the table's own. */
    const tdm_data_spec *trained_on;
    /* Of a model whose inputs have names: [input_count], as tdm_graph_get_input fills them; of several, `input` is the
     * width of their row. */
    const tdm_input_info *inputs;
    int input_count;
} tdm_data_use;

/* Opens the data, reads every sample and reports the number of samples, their shape, how often each label occurs, and
 * the mean and standard deviation per channel in the form that data.transform takes; of several inputs all of
 * data.transform, without the inputs that layers look up. Where all numbers of a channel are equal the deviation is 1,
 * as there is nothing to divide by. *report is text of several lines; free it with tdm_free. host NULL:
 * tdm_host_default(). use NULL: all zero. Bad data is TDM_E_DATA, and the message names the file or the sample; if only
 * pictures cannot be read, the report on the others is made, too. */
TDM_API tdm_status tdm_data_check(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                                  char **report);

/* Writes a PNG file that shows up to 64 samples, spread over the data, as the model sees them in epoch 0, but for
 * normalize. The file must not exist. host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_data_sheet(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                                  const char *path);

/* A picture of one sample: `bytes` of a PNG file, valid during the call; or png NULL, and `why` it cannot be shown. */
typedef tdm_status tdm_data_thumbnail(void *user, int64_t index, const void *png, size_t bytes, const char *why);
/* Calls `each` for each of `count` samples, in the order of `index`: what the model sees of them in epoch 0, but for
 * normalize, shrunk to at most `side` pixels a side. Stops at a status that is not TDM_OK, and returns it. TDM_E_DATA
 * if the data does not hold pictures. host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_data_thumbnails(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                                       const int64_t *index, int count, int side, tdm_data_thumbnail *each, void *user);

/* Calls `each` with the path of every picture: `path` itself if it is a file, else those in the folder and below
 * it, sorted by folder, then by name. The path is valid during the call. Stops at a status that is not TDM_OK, and
 * returns it. As in training, a link that leads out of the folder is refused: `each` is called for all others, then
 * TDM_E_DATA names the first. host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_data_pictures(const tdm_host *host, const char *path,
                                     tdm_status (*each)(void *user, const char *path), void *user);

/* Writes `samples` rendered digits into `folder`, which is made if it does not exist. Existing files are not
 * overwritten. format "idx": images-idx3-ubyte and labels-idx1-ubyte, 28 x 28, as in MNIST; "cifar10":
 * data_batch_1.bin; "npy": x.npy, bytes [samples, 1, 28, 28], and y.npy; "image_folder": PNG files of 32 x 32 pixels in
 * sub-folders. The same seed gives the same bytes. host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_data_make(const tdm_host *host, const char *format, const char *folder, int64_t samples,
                                 int64_t seed);

TDM_END_DECLS
#endif
