# The sources of the NCCL module, in one place for its two builds: libtandem-nccl.so (CMakeLists.txt here) and that of
# the tests, against the emulated CUDA and a fake NCCL (tests/fake/nccl). Absolute paths.
set(TDM_NCCL_SOURCES nccl_comm.c nccl_failure.c nccl_library.c nccl_module.c nccl_open.c nccl_site.c)
list(TRANSFORM TDM_NCCL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
