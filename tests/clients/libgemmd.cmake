# Tests of the clients in C, where they are built.
if(TARGET gemmctl)
  gm_test(test_client clients ${CMAKE_CURRENT_LIST_DIR}/test_client.c
    ${CMAKE_CURRENT_LIST_DIR}/scripted.c LIBRARIES libgemmd_static gemmd_proto Threads::Threads)
  target_link_options(test_client PRIVATE -Wl,--wrap=realloc)
  gm_test(test_histogram clients ${CMAKE_CURRENT_LIST_DIR}/test_histogram.c
    ${PROJECT_SOURCE_DIR}/clients/c/gemmctl/histogram.c LIBRARIES gemmd_proto m)
  set_tests_properties(clients.test_client PROPERTIES
    ENVIRONMENT "GEMMD_BIN=$<TARGET_FILE:gemmd>" TIMEOUT 120)

  # The same under valgrind, which sees what libcurl does too.
  find_program(GEMMD_VALGRIND valgrind)
  if(GEMMD_VALGRIND AND NOT GEMMD_SANITIZE)
    add_test(NAME clients.test_client_valgrind COMMAND ${GEMMD_VALGRIND} --quiet --leak-check=full
      --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible
      --error-exitcode=9 $<TARGET_FILE:test_client> --quick)
    set_tests_properties(clients.test_client_valgrind PROPERTIES LABELS clients
      ENVIRONMENT "GEMMD_BIN=$<TARGET_FILE:gemmd>" TIMEOUT 300)
  endif()

  # Installs this build, and builds the example with what was installed.
  if(NOT GEMMD_SANITIZE)
    add_test(NAME clients.install COMMAND ${CMAKE_CURRENT_LIST_DIR}/install.sh
      ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER})
    set_tests_properties(clients.install PROPERTIES LABELS clients SKIP_RETURN_CODE 77
      ENVIRONMENT "GEMMD_BIN=$<TARGET_FILE:gemmd>" TIMEOUT 300 COST 9)
  endif()

  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_gemmctl*.py)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^test_" "clients." name ${name})
    if(NOT TEST ${name})
      add_test(NAME ${name} COMMAND ${GEMMD_PYTHON} -m pytest -q -p no:cacheprovider ${file}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(${name} PROPERTIES LABELS clients TIMEOUT 300 COST 15
        ENVIRONMENT
        "GEMMD_BIN=$<TARGET_FILE:gemmd>;GEMMD_FAKE_BIN=$<TARGET_FILE:gemmd_fake>;${GM_PYTHON_CACHE}")
    endif()
  endforeach()
endif()
