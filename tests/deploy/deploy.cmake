# The scripts of deploy/, where they can be tried without installing anything.
if(NOT GEMMD_SANITIZE)
  foreach(name build deps progress)
    add_test(NAME unit.deploy_${name}
      COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/deploy/test_${name}.sh)
    set_tests_properties(unit.deploy_${name} PROPERTIES LABELS unit)
  endforeach()
  add_test(NAME unit.deploy_unit COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/deploy/test_unit.sh
    ${PROJECT_SOURCE_DIR}/deploy/gemmd.service)
  set_tests_properties(unit.deploy_unit PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endif()
