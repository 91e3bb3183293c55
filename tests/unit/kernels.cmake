# Tests of kernels/.
foreach(name op variant layout select buffer_pool gpu roof)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads)
endforeach()
set(planted unit/planted_gpu.c) # where the build has no code for GPUs
if(TARGET gemmd_cuda)
  set(planted "")
endif()
gm_test(test_choose unit unit/test_choose.c ${planted}
  LIBRARIES gemmd_kernels Threads::Threads PkgConfig::JANSSON m)
target_compile_definitions(test_choose PRIVATE
  GM_RESULTS="${CMAKE_CURRENT_SOURCE_DIR}/bench/results/")
gm_test(test_estimate unit unit/test_estimate.c LIBRARIES gemmd_kernels Threads::Threads m)
gm_test(test_untimed unit unit/test_untimed.c ${planted}
  LIBRARIES gemmd_kernels Threads::Threads m)
gm_test(test_tune unit unit/test_tune.c ${planted} LIBRARIES gemmd_kernels Threads::Threads m)
target_link_options(test_tune PRIVATE -Wl,--wrap=malloc,--wrap=calloc)
foreach(name cpu_facts cpu_grid cpu_pool cpu_reference evaluate)
  gm_test(test_${name} kernels unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
gm_test_part(cpu_case unit/test_cpu_case.c LIBRARIES gemmd_kernels Threads::Threads m)
gm_test_part(cpu_try unit/test_cpu_try.c LIBRARIES gemmd_kernels Threads::Threads m)
foreach(name cpu cpu_isa)
  gm_test(test_${name} kernels unit/test_${name}.c LIBRARIES cpu_case)
endforeach()
foreach(name cpu_variants cpu_add)
  gm_test(test_${name} kernels unit/test_${name}.c LIBRARIES cpu_case cpu_try)
endforeach()
