# The scripts of deploy/, where they can be tried without installing anything.
if(NOT GEMMD_SANITIZE)
  foreach(name build deps progress)
    add_test(NAME unit.deploy_${name}
      COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/deploy/test_${name}.sh)
    set_tests_properties(unit.deploy_${name} PROPERTIES LABELS unit)
  endforeach()
endif()
