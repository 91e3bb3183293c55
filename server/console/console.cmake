# What console.c has in it: the files of this folder, the kernels' sources, and d3, as they are and
# compressed.
find_file(GEMMD_D3 d3.min.js PATHS /usr/share/javascript/d3 NO_DEFAULT_PATH
  DOC "d3 3.5, minified, which draws the console's charts")
find_file(GEMMD_D3_LICENSE copyright PATHS /usr/share/doc/libjs-d3 NO_DEFAULT_PATH
  DOC "The licence of d3")
set(console_definitions "")
set(console_packed "")
if(GEMMD_D3 AND GEMMD_D3_LICENSE)
  set(console ${CMAKE_CURRENT_SOURCE_DIR}/console)
  set(console_made ${CMAKE_CURRENT_BINARY_DIR}/console)
  file(MAKE_DIRECTORY ${console_made})
  file(GLOB console_files CONFIGURE_DEPENDS ${console}/*.css ${console}/*.js ${console}/views/*.js)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu
    ${PROJECT_SOURCE_DIR}/kernels/cuda/*.h)
  set(console_list "")
  # Their names behind /console/: kernels/cuda/copy/direct.cu is kernels/copy.direct.cu there.
  foreach(file IN LISTS console_files kernels GEMMD_D3)
    file(RELATIVE_PATH name ${console} ${file})
    if(file IN_LIST kernels)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/kernels/cuda ${file})
      string(REPLACE "/" "." name ${name})
      set(name kernels/${name})
    elseif(file STREQUAL GEMMD_D3)
      set(name d3.min.js)
    endif()
    list(LENGTH console_packed n)
    string(APPEND console_list "GM_FILE(${n}, \"${name}\", \"${console_made}/${n}.gz\", \"${file}\")\n")
    list(APPEND console_packed ${console_made}/${n}.gz)
  endforeach()
  file(CONFIGURE OUTPUT ${console_made}/files.inc CONTENT "${console_list}")
  add_custom_command(OUTPUT ${console_packed}
    COMMAND ${GEMMD_PYTHON} ${console}/pack.py ${console_made} ${console_files} ${kernels} ${GEMMD_D3}
    DEPENDS ${console}/pack.py ${console_files} ${kernels} ${GEMMD_D3} ${console_made}/files.inc
    COMMENT "Packing the console's files" VERBATIM)
  list(APPEND console_packed ${console}/index.html)
  set(console_definitions GM_CONSOLE_FILES="${console_made}/files.inc" GM_CONSOLE_PAGE="${console}/index.html")
else()
  message(STATUS "d3 not found (package libjs-d3): gemmd is built without a console")
endif()
set_source_files_properties(console/console.c PROPERTIES
  OBJECT_DEPENDS "${console_packed}" COMPILE_DEFINITIONS "${console_definitions}")
