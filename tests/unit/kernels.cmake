# Tests of kernels/.
foreach(name op variant select slab)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads)
endforeach()
foreach(name cpu_facts cpu_pool cpu_reference)
  gm_test(test_${name} kernels unit/test_${name}.c LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
foreach(name cpu cpu_variants cpu_isa)
  gm_test(test_${name} kernels unit/test_${name}.c unit/test_cpu_case.c
    LIBRARIES gemmd_kernels Threads::Threads m)
endforeach()
