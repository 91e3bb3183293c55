# Tests of kernels/.
foreach(name op variant layout select slab gpu)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads)
endforeach()
foreach(name cpu_facts cpu_pool cpu_reference)
  gm_test(test_${name} kernels unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
foreach(name cpu cpu_isa)
  gm_test(test_${name} kernels unit/test_${name}.c unit/test_cpu_case.c
    LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
foreach(name cpu_variants cpu_add)
  gm_test(test_${name} kernels unit/test_${name}.c unit/test_cpu_case.c unit/test_cpu_try.c
    LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
