# What monitors gemmd: promtool and a Prometheus, with the real daemon. Once is enough: not under sanitizers.
if(NOT GEMMD_SANITIZE)
  add_test(NAME clients.prometheus COMMAND ${GEMMD_PYTHON} -m pytest -q -p no:cacheprovider
    ${CMAKE_CURRENT_LIST_DIR}/test_prometheus.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(clients.prometheus PROPERTIES LABELS clients SKIP_RETURN_CODE 77 TIMEOUT 300
    COST 9 ENVIRONMENT "GEMMD_BIN=$<TARGET_FILE:gemmd>;${GM_PYTHON_CACHE}")
endif()
