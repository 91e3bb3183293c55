# gm_simt_object(NAME FILES): compiles kernels for the simulator, and sets ${NAME} to their
# objects: those of an object library NAME_code, each with a table of its source lines (object.sh).
set(GM_SIMT_DIR ${CMAKE_CURRENT_LIST_DIR})
set(GEMMD_SIMT_FROM "" CACHE PATH
  "A build folder whose simulated kernels to link: they are the same machine code in every build")

# gm_simt_place(NAME FILE): sets ${place} to the path of FILE's object in its build folder.
function(gm_simt_place name file)
  file(RELATIVE_PATH folder ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  file(RELATIVE_PATH object ${PROJECT_SOURCE_DIR} ${file})
  string(REGEX REPLACE "[/.]" "_" object ${object})
  set(place ${folder}/${name}/${object}.o PARENT_SCOPE)
endfunction()

# gm_simt_take(NAME FILES): sets ${NAME} to their objects in another build folder.
function(gm_simt_take name files)
  set(objects "")
  foreach(file IN LISTS files)
    gm_simt_place(${name} ${file})
    list(APPEND objects ${GEMMD_SIMT_FROM}/${place})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE)
  add_custom_target(${name})
  set(${name} ${objects} PARENT_SCOPE)
endfunction()

function(gm_simt_object name files)
  if(GEMMD_SIMT_FROM)
    gm_simt_take(${name} "${files}")
    set(${name} ${${name}} PARENT_SCOPE)
    return()
  endif()
  add_library(${name}_code OBJECT ${files})
  # CUDA's own build of the same files is in another folder, so that there they stay CUDA.
  set_source_files_properties(${files} PROPERTIES LANGUAGE CXX)
  target_include_directories(${name}_code PRIVATE ${PROJECT_SOURCE_DIR} ${GM_SIMT_DIR}/include)
  target_compile_definitions(${name}_code PRIVATE _GNU_SOURCE)
  # In order: C++ whatever the suffix; warnings, but for CUDA's own pragmas and attributes; hooks at
  # each access and each step, and for what is undefined; accesses as the source has them, once
  # and in its order (no splitting of vectors, no moving or copying of blocks); paths as a report shows
  # them. Debug information is for lines and arrays: where variables are in registers takes a fifth of the
  # time of the compiler, and nobody reads it.
  target_compile_options(${name}_code PRIVATE -x c++ -std=c++17 -O1 -g -fno-var-tracking -fPIC
    -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-attributes
    -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fsanitize-coverage=trace-pc
    -fsanitize=bounds,signed-integer-overflow,shift,integer-divide-by-zero
    -fno-tree-sra -fno-ipa-sra -fno-reorder-blocks
    -fno-thread-jumps -fno-tree-dominator-opts -fno-tree-ch -fno-exceptions -fno-asynchronous-unwind-tables
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${CMAKE_BINARY_DIR}=/build
    -ffile-prefix-map=${CMAKE_CURRENT_BINARY_DIR}=/build)
  set(objects "")
  foreach(file IN LISTS files)
    gm_simt_place(${name} ${file})
    set(object ${CMAKE_BINARY_DIR}/${place})
    string(REGEX REPLACE "^(.*/)?([^/]+/[^/]+)$" "/\\2.o$" ending ${file})
    set(compiled $<FILTER:$<TARGET_OBJECTS:${name}_code>,INCLUDE,${ending}>)
    add_custom_command(OUTPUT ${object}
      COMMAND ${GM_SIMT_DIR}/object.sh ${CMAKE_C_COMPILER} ${CMAKE_LINKER} ${CMAKE_OBJCOPY}
        ${CMAKE_READELF} ${CMAKE_ADDR2LINE} ${PROJECT_SOURCE_DIR} ${compiled} ${object}
      DEPENDS ${name}_code ${compiled} ${GM_SIMT_DIR}/object.sh ${GM_SIMT_DIR}/object.ld
        ${GM_SIMT_DIR}/watch/hooks.syms ${GM_SIMT_DIR}/watch/dims.awk ${GM_SIMT_DIR}/watch/table.awk ${GM_SIMT_DIR}/watch/table.h
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(${name} DEPENDS ${objects})
  set(${name} ${objects} PARENT_SCOPE)
endfunction()
