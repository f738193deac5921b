# The sources of the NCCL module, for its two builds: libtandem-nccl.so (CMakeLists.txt here) and the one of the tests,
# against the emulated CUDA and a fake NCCL (tests/fake/nccl). Paths are absolute.
set(TDM_NCCL_SOURCES nccl_comm.c nccl_failure.c nccl_library.c nccl_module.c nccl_open.c nccl_site.c)
list(TRANSFORM TDM_NCCL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND TDM_NCCL_SOURCES ${PROJECT_SOURCE_DIR}/runtime/backends/nvidia/library.c
    ${PROJECT_SOURCE_DIR}/runtime/backends/kit/module_host.c)
