# A daemon for which time runs fast, for tests of its time-outs.
add_executable(gemmd_hasty http/gemmd_hasty.c ${PROJECT_SOURCE_DIR}/server/main.c)
target_link_libraries(gemmd_hasty PRIVATE gemmd_server gemmd_flags)
target_link_options(gemmd_hasty PRIVATE LINKER:--wrap=clock_gettime
  LINKER:--wrap=pthread_cond_timedwait)
