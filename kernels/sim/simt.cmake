# gm_simt_object(NAME FILES): compiles kernels for the simulator into one object, and sets
# ${NAME} to its path: an object library NAME_code, joined into one (join.sh).
set(GM_SIMT_DIR ${CMAKE_CURRENT_LIST_DIR})

function(gm_simt_object name files)
  add_library(${name}_code OBJECT ${files})
  # CUDA's own build of the same files is in another folder, so that there they stay CUDA.
  set_source_files_properties(${files} PROPERTIES LANGUAGE CXX)
  target_include_directories(${name}_code PRIVATE ${PROJECT_SOURCE_DIR} ${GM_SIMT_DIR}/include)
  target_compile_definitions(${name}_code PRIVATE _GNU_SOURCE)
  # In order: C++ whatever the suffix; warnings, but for CUDA's own pragmas and attributes; hooks at
  # each access and each step, and for what is undefined; accesses as the source has them, once
  # and in its order (no splitting of vectors, no moving or copying of blocks); paths as a report shows them.
  target_compile_options(${name}_code PRIVATE -x c++ -std=c++17 -O1 -g -fPIC
    -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-attributes
    -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fsanitize-coverage=trace-pc
    -fsanitize=bounds,signed-integer-overflow,shift,integer-divide-by-zero
    -fno-tree-sra -fno-ipa-sra -fno-reorder-blocks
    -fno-thread-jumps -fno-tree-dominator-opts -fno-tree-ch -fno-exceptions -fno-asynchronous-unwind-tables
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${GM_SIMT_DIR}/join.sh ${CMAKE_LINKER} ${CMAKE_OBJCOPY} ${GM_SIMT_DIR}/hooks.syms
      ${object} $<TARGET_OBJECTS:${name}_code>
    DEPENDS ${name}_code $<TARGET_OBJECTS:${name}_code> ${GM_SIMT_DIR}/hooks.syms
      ${GM_SIMT_DIR}/join.sh
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(${name} DEPENDS ${object})
  set(${name} ${object} PARENT_SCOPE)
endfunction()
