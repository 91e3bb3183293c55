# The scripts of deploy/, where they can be tried without installing anything.
if(NOT GEMMD_SANITIZE)
  add_test(NAME unit.deploy_build COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/deploy/test_build.sh)
  set_tests_properties(unit.deploy_build PROPERTIES LABELS unit)
endif()
