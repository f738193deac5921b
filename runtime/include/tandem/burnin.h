/* tandem/burnin.h - run a model on every device of a job for a while, and judge the devices.
 *
 * Each device has a copy of the model and a thread, and predicts the same samples again and again. A device is good if
 * its outputs are the same bits in every pass, and those of the other devices within the tolerance. Where devices
 * disagree, the majority is right; where there is none, or one device alone, the host's processor computes a sample and
 * decides. `burnin` of the job says how long, how many samples, and the tolerance; parallel.mode does not matter.
 *
 * Times: all devices begin at one instant, when all of them are open, have loaded the model and have made a batch. The
 * time of the whole is from then to the end of the last device, so the samples of all devices over it are the true
 * rate.
 *
 * Threads: one thread at a time uses a burn-in, except where a function says "any thread". */
#ifndef TANDEM_BURNIN_H
#define TANDEM_BURNIN_H

#include <tandem/tandem.h>

TDM_BEGIN_DECLS

typedef struct tdm_burnin tdm_burnin;

typedef struct tdm_burnin_progress {
    uint32_t size;   /* of this struct in the library that calls */
    double seconds;  /* since the common start */
    double fraction; /* of the whole, 0 to 1 */
    int64_t samples; /* of all devices */
    int64_t wrong;   /* batches whose outputs were other bits than in the first pass */
} tdm_burnin_progress;

typedef struct tdm_burnin_options {
    uint32_t size;
    const tdm_host *host;    /* NULL: tdm_host_default() */
    const char *module_path; /* as in tdm_run_options */
    /* Called about five times a second by tdm_burnin_run, on its thread. May be NULL. */
    void (*on_progress)(const tdm_burnin_progress *progress, void *user);
    void *user;
} tdm_burnin_options;
#define TDM_BURNIN_OPTIONS_INIT \
    { sizeof(tdm_burnin_options), NULL, NULL, NULL, NULL }

typedef enum tdm_burnin_verdict {
    TDM_BURNIN_GOOD,
    TDM_BURNIN_UNSTABLE, /* a later pass gave other bits */
    TDM_BURNIN_WRONG,    /* outputs that are not the others', or the host's */
    TDM_BURNIN_FAILED    /* it could not be opened, or a prediction failed */
} tdm_burnin_verdict;

/* Set `size` with TDM_BURNIN_DEVICE_INIT. */
typedef struct tdm_burnin_device {
    uint32_t size;
    char name[64]; /* "cuda:0" */
    tdm_burnin_verdict verdict;
    char why[400]; /* a sentence; "" if it is good */
    int64_t samples, batches;
    int64_t wrong_batches;             /* with other bits than in the first pass */
    double seconds;                    /* from the common start to this device's end */
    double ms_least, ms_mean, ms_most; /* of a batch; 0 without batches */
    double difference;                 /* the largest from the outputs that are right, relative to the largest output */
} tdm_burnin_device;
#define TDM_BURNIN_DEVICE_INIT \
    { sizeof(tdm_burnin_device), {0}, TDM_BURNIN_GOOD, {0}, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct tdm_burnin_total {
    uint32_t size;
    int devices, good;
    int64_t samples;           /* that the devices computed, passes counted apart */
    int64_t different_samples; /* of the data */
    int64_t batch;             /* samples at a time */
    double seconds;            /* from the common start to the end of the last device */
    double spread;             /* (fastest - slowest) / fastest, of samples a second */
    double tolerance;          /* in use */
    int equal_bits;            /* non-zero: all devices gave the same bits */
    int stopped;               /* non-zero: ended by tdm_burnin_request_stop */
} tdm_burnin_total;
#define TDM_BURNIN_TOTAL_INIT \
    { sizeof(tdm_burnin_total), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Opens the model on every device of the job, and reads the samples: of data.eval, or of data.train if there is none.
 * Pictures that cannot be read are left out with on_bad_sample: skip; TDM_E_DATA if that leaves no sample. The job is
 * copied and the graph kept, as tdm_run_open does; the host is borrowed until tdm_burnin_close. options NULL:
 * TDM_BURNIN_OPTIONS_INIT. A device that cannot be opened is judged as failed; if there is no other, its error is
 * returned. */
TDM_API tdm_status tdm_burnin_open(tdm_burnin **out, const tdm_job *job, const tdm_graph *graph,
                                   const tdm_burnin_options *options);
/* Runs all devices, once. TDM_E_CHECK if a device is not good. TDM_E_NUMERIC if outputs that all devices agree on are
 * not finite: that is the model. The functions below tell about the devices in both cases. */
TDM_API tdm_status tdm_burnin_run(tdm_burnin *burnin);
/* Ends the run after the batches that are being computed. Any thread; async-signal-safe. */
TDM_API void tdm_burnin_request_stop(tdm_burnin *burnin);
TDM_API tdm_status tdm_burnin_get_total(const tdm_burnin *burnin, tdm_burnin_total *out);
/* TDM_E_USAGE if there is no device of that index, in the order of parallel.device_ids. */
TDM_API tdm_status tdm_burnin_get_device(const tdm_burnin *burnin, int index, tdm_burnin_device *out);
/* "good", "unstable", "wrong", "failed"; static. */
TDM_API const char *tdm_burnin_verdict_name(tdm_burnin_verdict verdict);
TDM_API void tdm_burnin_close(tdm_burnin *burnin); /* NULL is allowed. */

TDM_END_DECLS
#endif
