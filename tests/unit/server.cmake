# Unit tests of server/: one program a module.
foreach(name accept account budget config connections listener log params problem routes worker)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_server)
endforeach()
foreach(name account problem)
  target_link_libraries(test_${name} PRIVATE PkgConfig::JANSSON m)
endforeach()
foreach(name devices sched sched_stop)
  gm_test(test_${name} unit unit/test_${name}.c unit/fake_backend.c LIBRARIES gemmd_server)
endforeach()
foreach(name request request_end request_503 stats)
  gm_test(test_${name} unit unit/test_${name}.c unit/request_bench.c unit/faulty_backend.c
    LIBRARIES gemmd_server PkgConfig::JANSSON m)
endforeach()
