# Fuzz targets. Here each is built with replay.c and run on its corpus, as a test; the fuzzers
# themselves are built by the project in this folder, from the same list: see run.sh.

# fuzz_target(NAME [LIBRARIES libraries...]): fuzz_NAME.c.
if(NOT COMMAND fuzz_target)
  gm_test_part(fuzz_replay fuzz/fuzz.c fuzz/fuzz_sink.c fuzz/replay.c LIBRARIES gemmd_server gemmd_proto m)
  function(fuzz_target name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    add_executable(fuzz_${name} fuzz/fuzz_${name}.c ${arg_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE fuzz_replay ${arg_LIBRARIES})
    add_test(NAME fuzz-corpus.${name}
      COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz-corpus.${name} PROPERTIES LABELS fuzz-corpus)
    set_property(GLOBAL APPEND PROPERTY GM_PROGRAMS fuzz-corpus.${name}:fuzz_${name})
  endfunction()
endif()

fuzz_target(json LIBRARIES PkgConfig::JANSSON)
fuzz_target(kserve LIBRARIES PkgConfig::JANSSON)
fuzz_target(csv)
fuzz_target(multipart)
fuzz_target(npy)
fuzz_target(raw)
fuzz_target(number)
fuzz_target(encode)
fuzz_target(eval)
fuzz_target(accept)
fuzz_target(format)
fuzz_target(key LIBRARIES PkgConfig::NETTLE)
fuzz_target(params)
fuzz_target(named)
fuzz_target(config LIBRARIES PkgConfig::NETTLE)
fuzz_target(sched SOURCES fuzz/gate.c fuzz/sched_world.c LIBRARIES Threads::Threads
  -Wl,--wrap=pthread_cond_timedwait,--wrap=gm_log)
