/* Queues are CUDA streams, events are CUDA events, captures are CUDA graphs. */
#include <stdint.h>

#include "runtime/backends/cuda/cuda_private.h"
#include "runtime/base/system/clock.h"

/* How long finish polls before it sleeps. A step of a small model takes 100 us to 1 ms, and waking a thread takes up to
 * 60 us, so short waits spin; longer ones leave the processor to the loader's threads. */
enum { BUSY_NS = 2000000 };

static tdm_status wait_for(cudaEvent_t event) {
    cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
        for (const int64_t end = tdm__now_ns() + BUSY_NS; error == cudaErrorNotReady && tdm__now_ns() < end;)
            error = cudaEventQuery(event);
        (void)cudaGetLastError(); /* "not ready" is no failure: clear it, or the next launch reports it */
        if (error == cudaErrorNotReady) error = cudaEventSynchronize(event);
    }
    TDM_CUDA_RESULT(error, "cudaEventSynchronize");
    return TDM_OK;
}

static tdm_status finish(tdm_device *device, tdm_queue *queue) {
    const cudaEvent_t waiter = tdm__cuda_full(device)->waiter;
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaEventRecord(waiter, tdm__cuda_stream(device, queue)));
    return wait_for(waiter);
}

/* CUDA's lowest priority is 0, which is also the default; higher priorities are negative. Captured work keeps the
 * priority of its stream. */
static tdm_status queue_open(tdm_device *device, tdm_queue_use use, tdm_queue **out) {
    int lowest = 0, highest = 0;
    cudaStream_t stream = NULL;
    *out = NULL;
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    TDM_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, use == TDM_COLLECTIVES ? highest : lowest));
    *out = (tdm_queue *)stream;
    return TDM_OK;
}

static void queue_close(tdm_device *device, tdm_queue *queue) {
    if (queue == NULL) return;
    (void)tdm__cuda_enter(device);
    (void)cudaStreamSynchronize((cudaStream_t)queue);
    if (cudaStreamDestroy((cudaStream_t)queue) != cudaSuccess) (void)cudaGetLastError();
}

static tdm_status event_open(tdm_device *device, tdm_event_use use, tdm_device_event **out) {
    unsigned flags = use == TDM_STAMPS ? cudaEventDefault : cudaEventDisableTiming;
    if (use == TDM_WAKES) flags |= cudaEventBlockingSync;
    cudaEvent_t event = NULL;
    *out = NULL;
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaEventCreateWithFlags(&event, flags));
    *out = (tdm_device_event *)event;
    return TDM_OK;
}

static void event_close(tdm_device *device, tdm_device_event *event) {
    if (event == NULL) return;
    (void)tdm__cuda_enter(device);
    if (cudaEventDestroy((cudaEvent_t)event) != cudaSuccess) (void)cudaGetLastError();
}

static tdm_status event_record(tdm_device *device, tdm_device_event *event, tdm_queue *queue) {
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaEventRecord((cudaEvent_t)event, tdm__cuda_stream(device, queue)));
    return TDM_OK;
}

/* In a capture a plain record is only a point for other streams to wait for; an external record is stamped in every run
 * of the graph. Outside of captures there is no difference. */
static tdm_status event_stamp(tdm_device *device, tdm_device_event *event, tdm_queue *queue) {
    TDM_CUDA_ENTER(device);
    cudaStream_t stream = tdm__cuda_stream(device, queue);
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    TDM_CUDA(cudaStreamIsCapturing(stream, &captured));
    bool external = captured == cudaStreamCaptureStatusActive;
    TDM_CUDA(cudaEventRecordWithFlags((cudaEvent_t)event, stream,
                                      external ? cudaEventRecordExternal : cudaEventRecordDefault));
    return TDM_OK;
}

static tdm_status event_wait(tdm_device *device, tdm_device_event *event, tdm_queue *queue) {
    tdm_cuda_full_device *full = tdm__cuda_full(device);
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaStreamWaitEvent(tdm__cuda_stream(device, queue), (cudaEvent_t)event, 0));
    /* A stream that waits for captured work is captured from here on, also on this device. */
    if (queue == NULL && !full->captured) {
        TDM_CUDA(cudaStreamIsCapturing(full->device.stream, &status));
        full->captured = status != cudaStreamCaptureStatusNone;
    }
    return TDM_OK;
}

static tdm_status event_done(tdm_device *device, tdm_device_event *event, bool *done) {
    *done = false;
    TDM_CUDA_ENTER(device);
    const cudaError_t error = cudaEventQuery((cudaEvent_t)event);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return TDM_OK;
    }
    TDM_CUDA_RESULT(error, "cudaEventQuery");
    *done = true;
    return TDM_OK;
}

static tdm_status event_finish(tdm_device *device, tdm_device_event *event) {
    TDM_CUDA_ENTER(device);
    return wait_for((cudaEvent_t)event);
}

static tdm_status event_ms(tdm_device *device, tdm_device_event *from, tdm_device_event *to, double *ms) {
    float elapsed = 0;
    *ms = 0;
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaEventElapsedTime(&elapsed, (cudaEvent_t)from, (cudaEvent_t)to));
    *ms = (double)elapsed;
    return TDM_OK;
}

/* Thread-local mode: calls of other replicas' threads do not break this capture. */
static tdm_status capture_begin(tdm_device *device) {
    TDM_CUDA_ENTER(device);
    tdm__cuda_full(device)->captured = true;
    TDM_CUDA(cudaStreamBeginCapture(tdm__cuda_device(device)->stream, cudaStreamCaptureModeThreadLocal));
    return TDM_OK;
}

static tdm_status capture_end(tdm_device *device, tdm_capture **out) {
    const cudaStream_t stream = tdm__cuda_device(device)->stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    const char *call = "cudaStreamEndCapture";
    *out = NULL;
    (void)tdm__cuda_enter(device); /* even if this fails the capture must be ended */
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&ready, graph, 0), call = "cudaGraphInstantiate";
    if (graph != NULL) (void)cudaGraphDestroy(graph);
    /* Uploads the graph now, so that its first run is as fast as the others. */
    if (error == cudaSuccess) error = cudaGraphUpload(ready, stream), call = "cudaGraphUpload";
    if (error != cudaSuccess && ready != NULL) (void)cudaGraphExecDestroy(ready);
    TDM_CUDA_RESULT(error, call);
    *out = (tdm_capture *)ready;
    return TDM_OK;
}

static tdm_status capture_run(tdm_device *device, tdm_capture *capture) {
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaGraphLaunch((cudaGraphExec_t)capture, tdm__cuda_device(device)->stream));
    return TDM_OK;
}

static void capture_free(tdm_device *device, tdm_capture *capture) {
    if (capture == NULL) return;
    (void)tdm__cuda_enter(device);
    if (cudaGraphExecDestroy((cudaGraphExec_t)capture) != cudaSuccess) (void)cudaGetLastError();
}

static void *queue_handle(tdm_device *device, tdm_queue *queue) {
    return (void *)tdm__cuda_stream(device, queue);
}

const tdm_queue_ops tdm__cuda_queue_ops = {
    .copy = tdm__cuda_copy,
    .finish = finish,
    .open = queue_open,
    .close = queue_close,
    .handle = queue_handle,
};

const tdm_event_ops tdm__cuda_event_ops = {
    .open = event_open,
    .close = event_close,
    .record = event_record,
    .stamp = event_stamp,
    .wait = event_wait,
    .done = event_done,
    .finish = event_finish,
    .ms = event_ms,
};

const tdm_capture_ops tdm__cuda_capture_ops = {
    .begin = capture_begin,
    .end = capture_end,
    .run = capture_run,
    .free = capture_free,
};
