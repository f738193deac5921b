# What cpack makes: -G DEB, a package for each component (lib for a machine that only runs, -dev, the command, pages);
# -G TGZ, one archive that is unpacked anywhere. Both hold the same bytes whenever and wherever they are built.
get_property(CPACK_COMPONENTS_ALL GLOBAL PROPERTY TDM_COMPONENTS)
list(REMOVE_DUPLICATES CPACK_COMPONENTS_ALL)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR "tandem maintainers")
set(CPACK_PACKAGE_CONTACT "tandem maintainers <maintainers@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
string(TOLOWER tandem-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} CPACK_PACKAGE_FILE_NAME)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0tandem1) # older than what Debian itself may make one day
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(about "tandem trains models described in YAML, on one device or data-parallel on
several, from the command line or inside a program in C, with PyTorch's
initial weights, order of samples and loss curve.
")
# A package: its component, name, section, packages it needs, its sentence, what it holds.
function(tdm_deb component name section depends summary holds)
    string(TOUPPER ${component} part)
    foreach(pair "PACKAGE_NAME;${name}" "PACKAGE_SECTION;${section}" "PACKAGE_DEPENDS;${depends}")
        list(GET pair 0 key)
        list(GET pair 1 value)
        set(CPACK_DEBIAN_${part}_${key} "${value}" PARENT_SCOPE)
    endforeach()
    set(CPACK_DEBIAN_${part}_DESCRIPTION "${summary}\n${about}\n${holds}" PARENT_SCOPE)
endfunction()
tdm_deb(runtime libtandem0 libs "" "data-parallel training runtime, library"
    "This package holds the library, oneDNN's kernels and the reader of pictures.")
tdm_deb(hosts libtandem0-hosts libs "libtandem0 ${same_version}" "data-parallel training runtime, several hosts"
    "This package holds the modules for runs on several hosts: Gloo and MPI.")
tdm_deb(cuda libtandem0-cuda libs "libtandem0 ${same_version}" "data-parallel training runtime, NVIDIA GPUs"
    "This package holds the modules for NVIDIA GPUs.")
tdm_deb(dev libtandem-dev libdevel "libtandem0 ${same_version}, libyaml-dev, libxxhash-dev, libmd-dev"
    "data-parallel training runtime, development files"
    "This package holds the headers, the static library, and the files\nthat pkg-config and CMake read.")
tdm_deb(tools tandem science "libtandem0 ${same_version}" "data-parallel training runtime, command"
    "This package holds the command tandem and its manual.")
tdm_deb(doc tandem-doc doc "" "data-parallel training runtime, pages and samples"
    "This package holds the pages and samples to start from.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "tandem-doc, libtandem0-hosts")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS zlib1g)

set(TDM_DEB_PAPERS "")
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} part)
    string(APPEND TDM_DEB_PAPERS "    debian_papers(\"\${stage}/${component}\" ${CPACK_DEBIAN_${part}_PACKAGE_NAME})\n")
endforeach()
configure_file(stage.cmake.in stage.cmake @ONLY)
configure_file(finish.cmake.in finish.cmake @ONLY)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/triggers)
configure_file(generator.cmake.in generator.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_BINARY_DIR}/stage.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_BINARY_DIR}/finish.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_BINARY_DIR}/generator.cmake)
include(CPack)
