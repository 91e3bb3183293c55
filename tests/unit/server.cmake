# Unit tests of server/: one program a module.
foreach(name accept account budget params routes worker)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_server)
endforeach()
target_link_libraries(test_account PRIVATE PkgConfig::JANSSON m)
foreach(name sched sched_stop)
  gm_test(test_${name} unit unit/test_${name}.c unit/fake_backend.c LIBRARIES gemmd_server)
endforeach()
