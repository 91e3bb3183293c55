# Tests of what people call gemmd with: a file test_*.py each, run by the Python of clients/venv.sh.
file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "^test_" "clients." name ${name})
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.sh ${file}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS clients SKIP_RETURN_CODE 77 TIMEOUT 300
    ENVIRONMENT "GEMMD_BIN=$<TARGET_FILE:gemmd>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
