# The contents of ops/ as lists: the names in ops.def, losses.def and optims.def, and the files in their folders. Every
# build of kernels includes this file; nothing else lists an op. Paths are absolute.
#   TDM_OPS TDM_LOSSES TDM_OPTIMS             names
#   TDM_OP_SOURCES                            definitions and reference kernels, for the library
#   TDM_LANES                                 code for several instruction sets, for the library
#   TDM_CUDA_OP_SOURCES TDM_CUDA_OP_CU        kernels of the CUDA module
#   TDM_DNNL_OP_SOURCES TDM_DNNL_OP_LANES     kernels of the dnnl module; code for several instruction sets
# and headers in <build>/generated/ops: cuda_kernels.def, cuda_losses.def, cuda_optims.def, dnnl_kernels.def, all_cases.h,
# optim_cases.def.
get_filename_component(tdm_ops_root ${CMAKE_CURRENT_LIST_FILE} DIRECTORY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${tdm_ops_root}/ops.def ${tdm_ops_root}/losses.def ${tdm_ops_root}/optims.def)

function(tdm_names out file kind)
    file(STRINGS ${tdm_ops_root}/${file} lines REGEX "^TDM_${kind}\\(")
    list(TRANSFORM lines REPLACE "^TDM_${kind}\\(([a-z0-9_]+)\\).*" "\\1")
    set(${out} ${lines} PARENT_SCOPE)
endfunction()
tdm_names(TDM_OPS ops.def OP)
tdm_names(TDM_LOSSES losses.def LOSS)
tdm_names(TDM_OPTIMS optims.def OPTIM)

set(TDM_OP_SOURCES)
foreach(op ${TDM_OPS})
    list(APPEND TDM_OP_SOURCES ${tdm_ops_root}/${op}/${op}.c ${tdm_ops_root}/${op}/${op}_ref.c)
endforeach()
list(APPEND TDM_OP_SOURCES ${tdm_ops_root}/reorder/reorder_ref.c) # not a layer, so not in ops.def
foreach(loss ${TDM_LOSSES})
    list(APPEND TDM_OP_SOURCES ${tdm_ops_root}/loss/${loss}/${loss}.c)
endforeach()
foreach(optim ${TDM_OPTIMS})
    list(APPEND TDM_OP_SOURCES ${tdm_ops_root}/optim/${optim}/${optim}.c)
endforeach()
file(GLOB TDM_LANES CONFIGURE_DEPENDS ${tdm_ops_root}/optim/*/*_lanes.c ${tdm_ops_root}/flat/*_lanes.c)

file(GLOB TDM_CUDA_OP_SOURCES CONFIGURE_DEPENDS ${tdm_ops_root}/*/*_cuda*.c)
file(GLOB TDM_CUDA_OP_CU CONFIGURE_DEPENDS ${tdm_ops_root}/*/*.cu ${tdm_ops_root}/loss/*/*.cu
    ${tdm_ops_root}/optim/*/*.cu)
list(APPEND TDM_CUDA_OP_SOURCES ${tdm_ops_root}/cuda_kernels.c)
file(GLOB TDM_DNNL_OP_SOURCES CONFIGURE_DEPENDS ${tdm_ops_root}/*/*_dnnl.c)
file(GLOB TDM_DNNL_OP_LANES CONFIGURE_DEPENDS ${tdm_ops_root}/*/*_lanes.c)
list(REMOVE_ITEM TDM_DNNL_OP_LANES ${TDM_LANES})
list(APPEND TDM_DNNL_OP_SOURCES ${tdm_ops_root}/dnnl_kernels.c)

set(cuda_kernels "")
set(dnnl_kernels "")
set(cuda_losses "")
set(cuda_optims "")
set(cases "")
set(optim_cases "")
foreach(op ${TDM_OPS} reorder)
    if(EXISTS ${tdm_ops_root}/${op}/${op}.cu OR EXISTS ${tdm_ops_root}/${op}/${op}_cuda.c)
        string(APPEND cuda_kernels "TDM_KERNEL(${op})\n")
    endif()
    if(EXISTS ${tdm_ops_root}/${op}/${op}_dnnl.c)
        string(APPEND dnnl_kernels "TDM_KERNEL(${op})\n")
    endif()
endforeach()
foreach(op ${TDM_OPS})
    string(APPEND cases "#include \"ops/${op}/${op}_cases.h\"\n")
endforeach()
foreach(loss ${TDM_LOSSES})
    if(EXISTS ${tdm_ops_root}/loss/${loss}/${loss}.cu)
        string(APPEND cuda_losses "TDM_LOSS(${loss})\n")
    endif()
endforeach()
foreach(optim ${TDM_OPTIMS})
    if(EXISTS ${tdm_ops_root}/optim/${optim}/${optim}.cu)
        string(APPEND cuda_optims "TDM_OPTIM(${optim})\n")
    endif()
    if(EXISTS ${tdm_ops_root}/optim/${optim}/${optim}_cases.def)
        string(APPEND optim_cases "#include \"ops/optim/${optim}/${optim}_cases.def\"\n")
    endif()
endforeach()
set(generated ${PROJECT_BINARY_DIR}/generated/ops)
file(CONFIGURE OUTPUT ${generated}/cuda_kernels.def CONTENT "${cuda_kernels}")
file(CONFIGURE OUTPUT ${generated}/cuda_losses.def CONTENT "${cuda_losses}")
file(CONFIGURE OUTPUT ${generated}/cuda_optims.def CONTENT "${cuda_optims}")
file(CONFIGURE OUTPUT ${generated}/dnnl_kernels.def CONTENT "${dnnl_kernels}")
file(CONFIGURE OUTPUT ${generated}/all_cases.h CONTENT "${cases}")
file(CONFIGURE OUTPUT ${generated}/optim_cases.def CONTENT "${optim_cases}")
