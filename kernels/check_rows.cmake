# check_rows.cmake - fails if a kernel file has no row in variants.def, or a row no file.
# Such a file would be compiled, but never run.
# Also a script: cmake -D GM_KERNELS=FOLDER -P check_rows.cmake

function(gm_check_rows kernels)
  file(READ ${kernels}/variants.def rows)
  file(GLOB files ${kernels}/cuda/*/*.cu)
  set(known "")
  foreach(file IN LISTS files)
    file(RELATIVE_PATH place ${kernels} ${file})
    string(REGEX REPLACE "^cuda/(.*)/(.*)\\.cu$" "\\1;\\2" parts ${place})
    list(GET parts 0 op)
    list(GET parts 1 name)
    string(TOUPPER ${op} op_upper)
    file(STRINGS ${file} entries REGEX "^GM_KERNEL\\(|GM_ENTRY\\(")
    if(NOT entries)
      message(FATAL_ERROR "kernels/${place} has no function that runs it. Add one that begins\n"
        "  GM_KERNEL(${op}_${name})\n")
    endif()
    foreach(entry IN LISTS entries)
      if(NOT entry MATCHES "^GM_KERNEL\\(([a-z0-9_]+)\\)")
        continue()
      endif()
      set(entry ${CMAKE_MATCH_1})
      list(APPEND known ${entry})
      if(NOT rows MATCHES "GM_(SIMT|GROUPED|CUDA)\\([A-Z0-9_]+,[ \n]*${entry},")
        message(FATAL_ERROR "kernels/${place} has no row in kernels/variants.def. Add one:\n"
          "  GM_SIMT(GM_OP_${op_upper}, ${entry}, \"${name}\", GM_TYPES_ALL, GM_FOLDS_NOTHING,\n"
          "          gm_accepts_any, gm_scratch_none, \"\", \"what is new in it, in one sentence\")\n"
          "  (GM_CUDA if the simulator cannot run it; kernels/ADDING.md explains each field)\n")
      endif()
    endforeach()
  endforeach()
  # Of a library's kernels the host functions are in C.
  file(GLOB files ${kernels}/cuda/*/*.c)
  foreach(file IN LISTS files)
    file(STRINGS ${file} entries REGEX "^enum gm_status gm_cuda_[a-z0-9_]+\\(")
    string(REGEX REPLACE "enum gm_status gm_cuda_([a-z0-9_]+)[^;]*" "\\1" entries "${entries}")
    list(APPEND known ${entries})
  endforeach()
  string(REGEX MATCHALL "GM_(SIMT|GROUPED|CUDA)\\([A-Z0-9_]+,[ \n]*[a-z0-9_]+" rows "${rows}")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE ".*[ \n]" "" entry "${row}")
    list(FIND known ${entry} at)
    if(at LESS 0)
      message(FATAL_ERROR "kernels/variants.def has a row of ${entry}, and no file in kernels/cuda/ "
        "has a function that begins\n  GM_KERNEL(${entry})\n")
    endif()
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  gm_check_rows(${GM_KERNELS})
else()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_SOURCE_DIR}/variants.def)
  gm_check_rows(${CMAKE_CURRENT_SOURCE_DIR})
endif()
