# tandem.spdx.json: what this build is made of (SPDX 2.3), from what CMake found: names, versions, licences, and what needs
# what. A date later than the sources' would make every build another one.
set(TDM_CHANGELOG ${CMAKE_CURRENT_LIST_DIR}/changelog)
file(STRINGS ${TDM_CHANGELOG} stamp REGEX "^ -- " LIMIT_COUNT 1)
string(REGEX REPLACE ".*>  " "" stamp "${stamp}")
if(DEFINED ENV{SOURCE_DATE_EPOCH})
    set(TDM_SOURCE_DATE $ENV{SOURCE_DATE_EPOCH})
else()
    execute_process(COMMAND date -u -d "${stamp}" +%s OUTPUT_VARIABLE TDM_SOURCE_DATE OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
execute_process(COMMAND date -u -d "@${TDM_SOURCE_DATE}" +%Y-%m-%dT%H:%M:%SZ OUTPUT_VARIABLE created
    OUTPUT_STRIP_TRAILING_WHITESPACE)

set(packages "")
set(relations "")
function(part name version licence relation to)
    if(version STREQUAL "")
        set(version NOASSERTION)
    endif()
    set(entry "{\"SPDXID\": \"SPDXRef-${name}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\", ")
    string(APPEND entry "\"licenseDeclared\": \"${licence}\", \"licenseConcluded\": \"${licence}\", ")
    string(APPEND entry "\"downloadLocation\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\", ")
    string(APPEND entry "\"filesAnalyzed\": false}")
    set(packages "${packages},\n  ${entry}" PARENT_SCOPE)
    set(line "{\"spdxElementId\": \"SPDXRef-${to}\", \"relationshipType\": \"${relation}\", ")
    string(APPEND line "\"relatedSpdxElement\": \"SPDXRef-${name}\"}")
    set(relations "${relations},\n  ${line}" PARENT_SCOPE)
endfunction()

part(tandem "${PROJECT_VERSION}" Apache-2.0 DESCRIBES DOCUMENT)
part(libyaml "${YAML_VERSION}" MIT DEPENDS_ON tandem)
part(xxHash "${XXHASH_VERSION}" BSD-2-Clause DEPENDS_ON tandem)
part(libmd "${MD_VERSION}" "BSD-3-Clause AND BSD-2-Clause AND ISC AND Beerware" DEPENDS_ON tandem)
part(zlib "${ZLIB_VERSION}" Zlib DEPENDS_ON tandem)
if(TDM_BUILD_COMMAND)
    part(jansson "${JANSSON_VERSION}" MIT DEPENDS_ON tandem)
endif()
foreach(module IN LISTS TDM_MODULES)
    string(TOUPPER ${module} upper)
    if(NOT TARGET tandem_${module})
        continue()
    endif()
    part(tandem-${module} "${PROJECT_VERSION}" Apache-2.0 CONTAINS tandem)
    if(module STREQUAL dnnl)
        file(STRINGS ${TDM_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h version
            REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
        string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" version "${version}")
        part(oneDNN "${version}" Apache-2.0 DEPENDS_ON tandem-dnnl)
        if(TDM_BUNDLE) # the compiler's own libraries: one as a file, one inside the modules
            set(licence "GPL-3.0-or-later WITH GCC-exception-3.1")
            part(libgomp "${CMAKE_C_COMPILER_VERSION}" "${licence}" DEPENDS_ON tandem-dnnl)
            part(libstdcxx "${CMAKE_C_COMPILER_VERSION}" "${licence}" DEPENDS_ON tandem-dnnl)
        endif()
    elseif(module STREQUAL image)
        pkg_check_modules(TDM_JPEG QUIET libjpeg)
        pkg_check_modules(TDM_PNG QUIET libpng)
        part(libjpeg-turbo "${TDM_JPEG_VERSION}" "IJG AND BSD-3-Clause AND Zlib" DEPENDS_ON tandem-image)
        part(libpng "${TDM_PNG_VERSION}" libpng-2.0 DEPENDS_ON tandem-image)
    elseif(module STREQUAL gloo)
        string(REGEX REPLACE ".*Gloo " "" version "${TDM_GLOO_FOUND}")
        part(Gloo "${version}" BSD-3-Clause DEPENDS_ON tandem-gloo)
    elseif(module STREQUAL mpi)
        string(REGEX MATCH "[0-9][0-9.]*" version "${TDM_MPI_FOUND}")
        part(MPI "${version}" NOASSERTION DEPENDS_ON tandem-mpi)
    elseif(module STREQUAL cuda)
        part(CUDA-runtime "${CMAKE_CUDA_COMPILER_VERSION}" LicenseRef-NVIDIA-CUDA-EULA DEPENDS_ON tandem-cuda)
    endif()
endforeach()

string(REGEX REPLACE "^,\n" "" packages "${packages}")
string(REGEX REPLACE "^,\n" "" relations "${relations}")
string(SHA256 name "${packages}${relations}") # the same parts, the same document
file(CONFIGURE OUTPUT tandem.spdx.json CONTENT "{\"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\",
 \"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": \"tandem-${PROJECT_VERSION}\",
 \"documentNamespace\": \"urn:tandem:${PROJECT_VERSION}:${name}\",
 \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: tandem-${PROJECT_VERSION}\"]},
 \"packages\": [
${packages}],
 \"relationships\": [
${relations}]}
" @ONLY)
