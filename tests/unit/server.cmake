# Unit tests of server/: one program a module.
foreach(name accept access quota account body_format config connection_limiter connections cost eval fair_queue forecast json_line
    listener log memory_quota notify params receive probe problem routes sandbox wait worker)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES gemmd_server)
endforeach()
gm_test(test_resolve unit unit/test_resolve.c LIBRARIES gemmd_server)
target_link_options(test_resolve PRIVATE -Wl,--wrap=getaddrinfo)
gm_test(test_library_log unit unit/test_library_log.c
  LIBRARIES gemmd_server PkgConfig::MICROHTTPD Threads::Threads)
target_link_options(test_library_log PRIVATE -Wl,--wrap=MHD_get_version_bin)
# What these build is whole or not there, whichever allocation fails.
gm_test(test_document unit unit/test_document.c LIBRARIES gemmd_server PkgConfig::JANSSON)
target_link_options(test_document PRIVATE -Wl,--wrap=malloc)
gm_test(test_text_stream unit unit/test_text_stream.c LIBRARIES gemmd_server)
target_link_options(test_text_stream PRIVATE -Wl,--wrap=realloc)
foreach(name account json_line problem)
  target_link_libraries(test_${name} PRIVATE PkgConfig::JANSSON m)
endforeach()
gm_test_part(fake_backend unit/fake_backend.c LIBRARIES gemmd_server)
foreach(name locks sched sched_stop)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES fake_backend)
endforeach()
gm_test(test_devices unit unit/test_devices.c ${planted} LIBRARIES fake_backend) # kernels.cmake
gm_test_part(request_bench unit/request_bench.c unit/faulty_backend.c
  LIBRARIES gemmd_server PkgConfig::JANSSON m)
foreach(name body_parts body_parts_formats compare compare_end matrices request request_infer request_regions request_end request_503 stats)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES request_bench)
endforeach()
gm_test_part(explain_case unit/explain_case.c LIBRARIES gemmd_server PkgConfig::JANSSON m)
foreach(name explain explain_formats)
  gm_test(test_${name} unit unit/test_${name}.c LIBRARIES explain_case)
endforeach()
gm_test(test_request_explain unit unit/test_request_explain.c unit/tracing_backend.c
  LIBRARIES request_bench)
