# The module's files, for the module and for tests that fuzz them.
set(TDM_IMAGE_SOURCES)
foreach(file exif.c image_module.c jpeg.c png.c turn.c ../kit/module_host.c)
    list(APPEND TDM_IMAGE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${file})
endforeach()
