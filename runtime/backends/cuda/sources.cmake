# The sources of the CUDA module, for its two builds: libtandem-cuda.so (CMakeLists.txt here) and the emulated module of
# the tests (tests/fake/cuda). Paths are absolute.
include(${PROJECT_SOURCE_DIR}/ops/ops.cmake)
set(TDM_CUDA_C_SOURCES cuda_device.c cuda_error.c cuda_libraries.c cuda_matmul.c cuda_memory.c cuda_module.c cuda_queue.c
    cuda_report.c cuda_trial.c)
set(TDM_CUDA_CU_SOURCES flat.cu ingest.cu passes.cu)
list(TRANSFORM TDM_CUDA_C_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND TDM_CUDA_C_SOURCES ${PROJECT_SOURCE_DIR}/runtime/backends/nvidia/library.c
    ${PROJECT_SOURCE_DIR}/runtime/backends/kit/module_host.c)
list(TRANSFORM TDM_CUDA_CU_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND TDM_CUDA_C_SOURCES ${TDM_CUDA_OP_SOURCES})
list(APPEND TDM_CUDA_CU_SOURCES ${TDM_CUDA_OP_CU})
