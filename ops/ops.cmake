# The contents of ops/ as lists: the names in ops.def, losses.def and optims.def, and the files in their folders. Every
# build of kernels includes this file; nothing else lists an op. Paths are absolute.
#   TDM_OPS TDM_LOSSES TDM_OPTIMS             names
#   TDM_OP_SOURCES                            definitions and reference kernels, for the library
#   TDM_LANES                                 code for several instruction sets, for the library
#   TDM_CUDA_OP_SOURCES TDM_CUDA_OP_CU        kernels of the CUDA module
#   TDM_DNNL_OP_SOURCES TDM_DNNL_OP_LANES     kernels of the dnnl module; code for several instruction sets
# and headers in <build>/generated/ops: cuda_kernels.def, cuda_losses.def, cuda_optims.def, dnnl_kernels.def, all_cases.h,
# loss_cases.def, optim_cases.def, activations.h (what loops of activation_lanes.h there are, for their test).
function(tdm_names out file kind)
    file(STRINGS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${file} lines REGEX "^TDM_${kind}\\(")
    list(TRANSFORM lines REPLACE "^TDM_${kind}\\(([a-z0-9_]+)\\).*" "\\1")
    set(${out} ${lines} PARENT_SCOPE)
endfunction()

# A function, so that only the lists are left behind.
function(tdm_list_ops)
    set(root ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        ${root}/ops.def ${root}/losses.def ${root}/optims.def)

    tdm_names(TDM_OPS ops.def OP)
    tdm_names(TDM_LOSSES losses.def LOSS)
    tdm_names(TDM_OPTIMS optims.def OPTIM)

    set(TDM_OP_SOURCES)
    foreach(op ${TDM_OPS})
        list(APPEND TDM_OP_SOURCES ${root}/${op}/${op}.c ${root}/${op}/${op}_ref.c)
    endforeach()
    list(APPEND TDM_OP_SOURCES ${root}/reorder/reorder_ref.c) # not a layer, so not in ops.def
    foreach(loss ${TDM_LOSSES})
        list(APPEND TDM_OP_SOURCES ${root}/loss/${loss}/${loss}.c)
    endforeach()
    foreach(optim ${TDM_OPTIMS})
        list(APPEND TDM_OP_SOURCES ${root}/optim/${optim}/${optim}.c)
    endforeach()
    file(GLOB TDM_LANES CONFIGURE_DEPENDS ${root}/optim/*/*_lanes.c ${root}/flat/*_lanes.c ${root}/loss/*_lanes.c)

    file(GLOB TDM_CUDA_OP_SOURCES CONFIGURE_DEPENDS ${root}/*/*_cuda*.c)
    file(GLOB TDM_CUDA_OP_CU CONFIGURE_DEPENDS ${root}/*/*.cu ${root}/loss/*/*.cu
        ${root}/optim/*/*.cu)
    list(APPEND TDM_CUDA_OP_SOURCES ${root}/cuda_kernels.c)
    file(GLOB TDM_DNNL_OP_SOURCES CONFIGURE_DEPENDS ${root}/*/*_dnnl.c)
    file(GLOB TDM_DNNL_OP_LANES CONFIGURE_DEPENDS ${root}/*/*_lanes.c)
    list(REMOVE_ITEM TDM_DNNL_OP_LANES ${TDM_LANES})
    list(APPEND TDM_DNNL_OP_LANES ${root}/loss/classes_lanes.c) # for log_softmax
    foreach(op add concat slice transpose) # kit/rows.h
        list(APPEND TDM_DNNL_OP_SOURCES ${root}/${op}/${op}_ref.c)
    endforeach()
    list(APPEND TDM_DNNL_OP_SOURCES ${root}/dnnl_kernels.c)

    set(cuda_kernels "")
    set(dnnl_kernels "")
    set(cuda_losses "")
    set(cuda_optims "")
    set(cases "")
    set(loss_cases "")
    set(optim_cases "")
    foreach(op ${TDM_OPS} reorder)
        if(EXISTS ${root}/${op}/${op}.cu OR EXISTS ${root}/${op}/${op}_cuda.c)
            string(APPEND cuda_kernels "TDM_KERNEL(${op})\n")
        endif()
        if(EXISTS ${root}/${op}/${op}_dnnl.c)
            string(APPEND dnnl_kernels "TDM_KERNEL(${op})\n")
        endif()
    endforeach()
    set(formulas "")
    set(activations "#define TDM_ACTIVATIONS(EACH)")
    foreach(op ${TDM_OPS})
        string(APPEND cases "#include \"ops/${op}/${op}_cases.h\"\n")
        if(EXISTS ${root}/${op}/${op}_lanes.c)
            file(STRINGS ${root}/${op}/${op}_lanes.c is_activation REGEX "^TDM_ACTIVATION_LANES")
            if(is_activation)
                string(APPEND formulas "#include \"ops/${op}/${op}.h\"\n")
                string(APPEND activations " EACH(${op})")
            endif()
        endif()
    endforeach()
    foreach(loss ${TDM_LOSSES})
        if(EXISTS ${root}/loss/${loss}/${loss}.cu)
            string(APPEND cuda_losses "TDM_LOSS(${loss})\n")
        endif()
        if(EXISTS ${root}/loss/${loss}/${loss}_cases.def)
            string(APPEND loss_cases "#include \"ops/loss/${loss}/${loss}_cases.def\"\n")
        endif()
    endforeach()
    foreach(optim ${TDM_OPTIMS})
        if(EXISTS ${root}/optim/${optim}/${optim}.cu)
            string(APPEND cuda_optims "TDM_OPTIM(${optim})\n")
        endif()
        if(EXISTS ${root}/optim/${optim}/${optim}_cases.def)
            string(APPEND optim_cases "#include \"ops/optim/${optim}/${optim}_cases.def\"\n")
        endif()
    endforeach()
    set(generated ${PROJECT_BINARY_DIR}/generated/ops)
    file(CONFIGURE OUTPUT ${generated}/cuda_kernels.def CONTENT "${cuda_kernels}")
    file(CONFIGURE OUTPUT ${generated}/cuda_losses.def CONTENT "${cuda_losses}")
    file(CONFIGURE OUTPUT ${generated}/cuda_optims.def CONTENT "${cuda_optims}")
    file(CONFIGURE OUTPUT ${generated}/dnnl_kernels.def CONTENT "${dnnl_kernels}")
    file(CONFIGURE OUTPUT ${generated}/all_cases.h CONTENT "${cases}")
    file(CONFIGURE OUTPUT ${generated}/activations.h CONTENT "${formulas}${activations}\n")
    file(CONFIGURE OUTPUT ${generated}/loss_cases.def CONTENT "${loss_cases}")
    file(CONFIGURE OUTPUT ${generated}/optim_cases.def CONTENT "${optim_cases}")
    foreach(list TDM_OPS TDM_LOSSES TDM_OPTIMS TDM_OP_SOURCES TDM_LANES TDM_CUDA_OP_SOURCES TDM_CUDA_OP_CU TDM_DNNL_OP_SOURCES
            TDM_DNNL_OP_LANES)
        set(${list} ${${list}} PARENT_SCOPE)
    endforeach()
endfunction()
tdm_list_ops()
