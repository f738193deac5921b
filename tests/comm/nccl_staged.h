/* A communicator in host memory over NCCL's: each call's data goes to the device, is reduced there, is waited for and
 * comes back. So the text that tests the other backends tests this one. */
#ifndef TEST_COMM_NCCL_STAGED_H
#define TEST_COMM_NCCL_STAGED_H

#include <tandem/sys/comm.h>
#include <tandem/sys/device.h>

/* The modules of TANDEM_MODULE_PATH, over the emulated CUDA. */
tdm_status nccl_find(const tdm_device_ops **device, const tdm_comm_ops **comm);

tdm_status staged_open(tdm_comm **out, tdm_comm *control, int device_index, int64_t timeout_ms);

#endif
