# The sources of the CUDA module, in one place for its two builds: libtandem-cuda.so (CMakeLists.txt here) and the
# emulated one of the tests (tests/fake/cuda). Absolute paths.
get_filename_component(tdm_cuda_root ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(TDM_CUDA_C_SOURCES
    runtime/device/cuda/cuda_device.c
    runtime/device/cuda/cuda_error.c
    runtime/device/cuda/cuda_libraries.c
    runtime/device/cuda/cuda_matmul.c
    runtime/device/cuda/cuda_memory.c
    runtime/device/cuda/cuda_module.c
    runtime/device/cuda/cuda_queue.c
    runtime/device/cuda/cuda_report.c
    runtime/device/cuda/cuda_trial.c
    ops/conv2d/conv2d_cuda.c
    ops/conv2d/conv2d_cudnn.c
    ops/conv2d/conv2d_im2col.c
    ops/linear/linear_cuda.c
)
set(TDM_CUDA_CU_SOURCES
    ops/cuda_module/flat.cu
    ops/cuda_module/ingest.cu
    ops/cuda_module/passes.cu
    ops/adaptive_avgpool2d/adaptive_avgpool2d.cu
    ops/add/add.cu
    ops/avgpool2d/avgpool2d.cu
    ops/batchnorm2d/batchnorm2d.cu
    ops/conv2d/conv2d.cu
    ops/cross_entropy/cross_entropy.cu
    ops/dropout/dropout.cu
    ops/maxpool2d/maxpool2d.cu
    ops/mse/mse.cu
    ops/relu/relu.cu
    ops/reorder/reorder.cu
)
list(TRANSFORM TDM_CUDA_C_SOURCES PREPEND ${tdm_cuda_root}/)
list(TRANSFORM TDM_CUDA_CU_SOURCES PREPEND ${tdm_cuda_root}/)
