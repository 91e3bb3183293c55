# Torture: calls of the daemon fail in turn (see fault/torture.py). What runs here is the same sample
# each time, so that a run that fails does so again; `--all` runs everything.
add_library(torture SHARED fault/torture.c)
target_link_libraries(torture PRIVATE ${CMAKE_DL_LIBS})
target_include_directories(torture PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(torture PRIVATE _GNU_SOURCE)
target_compile_options(torture PRIVATE -Wall -Wextra -Werror -Wshadow -Wvla)
set(under "GEMMD_BIN=$<TARGET_FILE:gemmd>" "GEMMD_TORTURE=$<TARGET_FILE:torture>"
  ${GM_PYTHON_CACHE})
if(GEMMD_SANITIZE)
  list(APPEND under GM_SLOW=1)
endif()
set(parts requests first-requests)
# A sanitizer's own start of a thread gives up where memory lacks.
if(NOT GEMMD_SANITIZE)
  list(APPEND parts start-up)
endif()
foreach(part IN LISTS parts)
  add_test(NAME http.torture-${part} COMMAND ${GEMMD_PYTHON}
    ${CMAKE_CURRENT_SOURCE_DIR}/fault/torture.py --${part} --seconds 5 --seed 1)
  set_tests_properties(http.torture-${part} PROPERTIES LABELS http SKIP_RETURN_CODE 77
    TIMEOUT 300 ENVIRONMENT "${under}")
endforeach()
