/* For functions that CUDA kernels call too. */
#ifndef TDM_BASE_HOST_DEVICE_H
#define TDM_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define TDM_HOST_DEVICE __host__ __device__
#else
#define TDM_HOST_DEVICE
#endif

#endif
