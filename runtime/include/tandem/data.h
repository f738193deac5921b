/* tandem/data.h - looking through data sets, and making small ones. */
#ifndef TANDEM_DATA_H
#define TANDEM_DATA_H

#include <tandem/host.h>
#include <tandem/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the samples are for. Zeroed: anything that the files hold, with class labels. */
typedef struct tdm_data_use {
    uint32_t size; /* sizeof(tdm_data_use) */
    int ndim;      /* of the model's input; 0: the shape that the files have */
    int64_t input[6];
    bool float_targets;    /* instead of class labels */
    int64_t target_width;  /* float targets a sample; 0: as many as there are */
    int64_t classes;       /* labels must be below this; 0: any */
    bool has_ignore_index; /* labels may also be `ignore_index` */
    int64_t ignore_index;
    int64_t seed; /* the job's, for data that is drawn */
    int rng_profile;
} tdm_data_use;

/* Opens the data, reads every sample, and says what is there: how many, their shape, how often each label occurs, and
 * mean and standard deviation per channel in the form of data.transform. Text of several lines into *report, for
 * tdm_free. What is wrong is TDM_E_DATA and names the file or the sample. host NULL: tdm_host_default();
 * use NULL: zeroed. */
TDM_API tdm_status tdm_data_check(const tdm_host *host, const tdm_data_spec *spec, const tdm_data_use *use,
                                  char **report);

/* Writes `samples` drawn digits into `folder`, which is made if need be; files that exist are not overwritten.
 * format "idx": images-idx3-ubyte and labels-idx1-ubyte, 28 x 28, as MNIST; "cifar10": data_batch_1.bin; "npy":
 * x.npy, bytes [samples, 1, 28, 28], and y.npy. The same seed writes the same bytes. */
TDM_API tdm_status tdm_data_make(const tdm_host *host, const char *format, const char *folder, int64_t samples,
                                 int64_t seed);

#ifdef __cplusplus
}
#endif
#endif
