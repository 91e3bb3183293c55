# What docs.c has in it: the contract as JSON, the licences, and the viewer if it is there.
execute_process(COMMAND ${GEMMD_PYTHON} -c "import yaml" RESULT_VARIABLE missing ERROR_QUIET)
if(missing)
  message(FATAL_ERROR
    "${GEMMD_PYTHON} has no PyYAML, which reads proto/openapi.yaml (package python3-yaml)")
endif()

# It runs while building: without sanitizers, some of which cannot start everywhere.
add_executable(gemmd_tables api/docs/tables.c)
target_include_directories(gemmd_tables PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(gemmd_tables PRIVATE _GNU_SOURCE GM_VERSION="${PROJECT_VERSION}")

set(docs ${CMAKE_CURRENT_SOURCE_DIR}/api/docs)
set(made ${CMAKE_CURRENT_BINARY_DIR}/docs)
set(contract ${PROJECT_SOURCE_DIR}/proto/openapi.yaml ${PROJECT_SOURCE_DIR}/proto/PROTOCOL.md)
file(MAKE_DIRECTORY ${made})
add_custom_command(OUTPUT ${made}/openapi.json
  COMMAND gemmd_tables > ${made}/tables.json
  COMMAND ${GEMMD_PYTHON} ${docs}/openapi.py ${contract} ${made}/tables.json > ${made}/openapi.new
  COMMAND ${CMAKE_COMMAND} -E rename ${made}/openapi.new ${made}/openapi.json
  DEPENDS gemmd_tables ${docs}/openapi.py ${contract} VERBATIM)

# Swagger UI, as deploy/deps.sh fetches it, or wherever GEMMD_VIEWER says that its files are.
find_path(GEMMD_VIEWER swagger-ui-bundle.js NO_DEFAULT_PATH
  PATHS ${PROJECT_SOURCE_DIR}/build/viewer/flask_swagger_ui/dist
  DOC "The folder of Swagger UI's files, for /docs")
set(licenses ${PROJECT_SOURCE_DIR}/NOTICE ${PROJECT_SOURCE_DIR}/LICENSE)
set(embedded ${made}/openapi.json ${made}/licenses.txt ${docs}/page.html ${docs}/start.js)
set(definitions GM_DOCS_SOURCE="${docs}" GM_DOCS_BUILD="${made}")
if(GEMMD_VIEWER)
  list(APPEND licenses ${GEMMD_VIEWER}/LICENSE)
  list(APPEND embedded ${GEMMD_VIEWER}/swagger-ui-bundle.js ${GEMMD_VIEWER}/swagger-ui.css)
  list(APPEND definitions GM_DOCS_VIEWER="${GEMMD_VIEWER}")
else()
  message(STATUS "Swagger UI not found: gemmd is built without /docs")
endif()
if(GEMMD_D3 AND GEMMD_D3_LICENSE)
  list(APPEND licenses ${GEMMD_D3_LICENSE})
endif()
add_custom_command(OUTPUT ${made}/licenses.txt
  COMMAND ${CMAKE_COMMAND} -E cat ${licenses} > ${made}/licenses.txt
  DEPENDS ${licenses} VERBATIM)
set_source_files_properties(api/docs/docs.c PROPERTIES
  OBJECT_DEPENDS "${embedded}" COMPILE_DEFINITIONS "${definitions}")
