# Tests of the simulator, and of the kernels as it runs them.
include(${PROJECT_SOURCE_DIR}/kernels/sim/simt.cmake)

# Kernels that are wrong, each in one way: what finds them must also work in programs that are
# built with sanitizers, so these are unit tests, which run under all of them.
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/broken/*.cu)
gm_simt_object(simt_broken "${kernels}")
gm_test_part(run_kernel sim/run_kernel.c LIBRARIES gemmd_kernels Threads::Threads m)
foreach(name broken sound start)
  gm_test(test_sim_${name} unit sim/test_sim_${name}.c ${simt_broken} LIBRARIES run_kernel)
  add_dependencies(test_sim_${name} simt_broken)
endforeach()
target_compile_definitions(test_sim_broken PRIVATE GM_TEST_SIM="${CMAKE_CURRENT_LIST_DIR}")

# Every variant, against the oracle.
foreach(name variants random)
  gm_test(test_sim_${name} sim sim/test_sim_${name}.c LIBRARIES cpu_case cpu_try)
  set_tests_properties(sim.test_sim_${name} PROPERTIES TIMEOUT 900)
endforeach()
# A name that no variant has must not pass, though nothing would be wrong.
add_test(NAME sim.test_sim_variants_unknown COMMAND test_sim_variants --only transpose/pair)
set_tests_properties(sim.test_sim_variants_unknown PROPERTIES LABELS sim
  PASS_REGULAR_EXPRESSION "there is no transpose/pair here")
# One round of the random requests: what every variant is tried with in run.sh --quick.
add_test(NAME sim.test_sim_random_short COMMAND test_sim_random 1)
set_tests_properties(sim.test_sim_random_short PROPERTIES LABELS sim TIMEOUT 300)
if(NOT GEMMD_SANITIZE)
  add_test(NAME sim.test_sim_variants_large COMMAND test_sim_variants --large)
  set_tests_properties(sim.test_sim_variants_large PROPERTIES LABELS sim TIMEOUT 900)
endif()

# Groups of tasks in one launch, here and on a GPU.
gm_test(test_groups sim sim/test_groups.c LIBRARIES gemmd_kernels Threads::Threads m)
if(TARGET gemmd_cuda)
  add_test(NAME gpu.test_groups COMMAND test_groups cuda)
  set_tests_properties(gpu.test_groups PROPERTIES LABELS gpu SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()

# Its parts.
gm_test_part(model_count sim/model_count.c LIBRARIES gemmd_kernels Threads::Threads m)
foreach(name tally shadow trace)
  gm_test(test_sim_${name} unit sim/test_sim_${name}.c LIBRARIES model_count)
endforeach()

# The language that kernels are written in.
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/language/*.cu)
gm_simt_object(simt_language "${kernels}")
foreach(name language arithmetic divergence)
  gm_test(test_sim_${name} sim sim/test_sim_${name}.c ${simt_language} LIBRARIES run_kernel)
  add_dependencies(test_sim_${name} simt_language)
endforeach()
target_compile_definitions(test_sim_divergence PRIVATE GM_TEST_SIM="${CMAKE_CURRENT_LIST_DIR}")

# What kernels share, where their results do not tell, and kernels that no row has.
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/parts/*.cu)
# The example of the page for authors, so that it stays right.
set(page ${PROJECT_SOURCE_DIR}/kernels/ADDING.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} text)
string(REGEX REPLACE "^.*\n```cuda\n([^`]*)\n```.*$" "\\1\n" example "${text}")
file(CONFIGURE OUTPUT example/swizzled.cu CONTENT "${example}" @ONLY)
if(NOT GEMMD_SIMT_FROM) # objects are taken by their sources' names, and this one is the build's own
  list(APPEND kernels ${CMAKE_CURRENT_BINARY_DIR}/example/swizzled.cu)
endif()
gm_simt_object(simt_parts "${kernels}")
gm_test(test_sim_rows sim sim/test_sim_rows.c LIBRARIES run_kernel)
gm_test(test_sim_tile_order sim sim/test_sim_tile_order.c ${simt_parts} LIBRARIES run_kernel)
add_dependencies(test_sim_tile_order simt_parts)

# Reports: the textbook's figures, samples of large shapes, and where in the source they are.
gm_test_part(model sim/explain_variant.c sim/model.c LIBRARIES gemmd_kernels m)
foreach(name figures samples places)
  gm_test(test_sim_${name} sim sim/test_sim_${name}.c LIBRARIES model model_count)
endforeach()
target_sources(test_sim_samples PRIVATE ${simt_parts})
add_dependencies(test_sim_samples simt_parts)
# Without symbols and debugging information: the simulator knows its kernels by its own tables.
target_link_options(test_sim_places PRIVATE -s)

# The kernels with faults in them: a test must notice.
if(NOT GEMMD_SANITIZE AND CMAKE_GENERATOR MATCHES "Makefiles|^Ninja$")
  add_test(NAME sim.mutate COMMAND ${GEMMD_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/mutate.py
    --build ${PROJECT_BINARY_DIR})
  set_tests_properties(sim.mutate PROPERTIES LABELS sim PROCESSORS 2 TIMEOUT 900)
endif()

# A kernel file without a row.
add_test(NAME sim.rows COMMAND ${GEMMD_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_rows.py
  ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR})
set_tests_properties(sim.rows PROPERTIES LABELS sim)
