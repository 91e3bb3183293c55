# Tests that need a GPU; skipped, in words, where there is none. And the benchmark of what they
# test: built, so that it cannot rot, but not run.
if(TARGET gemmd_cuda)
  gm_test(test_gpu_kernels gpu gpu/test_gpu_kernels.c gpu/prove.c gpu/device.c
    unit/test_cpu_case.c LIBRARIES gemmd_kernels gemmd_cuda Threads::Threads m ${CMAKE_DL_LIBS})

  # The language is known where it was enabled, and below.
  set(CMAKE_CUDA_COMPILER ${GEMMD_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  enable_language(CUDA)
  add_library(gpu_kernels STATIC gpu/huge.cu bench/bench_gpu_data.cu bench/baseline_nothing.cu)
  set_target_properties(gpu_kernels PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
    CUDA_RUNTIME_LIBRARY Static)
  target_include_directories(gpu_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(gpu_kernels PRIVATE $<BUILD_INTERFACE:gemmd_nvcc_flags>)
  gm_test(test_gpu_huge gpu gpu/test_gpu_huge.c gpu/device.c
    LIBRARIES gpu_kernels gemmd_kernels gemmd_cuda Threads::Threads m ${CMAKE_DL_LIBS})

  add_executable(profile_gpu gpu/profile_gpu.c gpu/profiled.c gpu/device.c)
  target_link_libraries(profile_gpu PRIVATE gemmd_kernels gemmd_cuda gemmd_flags m)

  add_executable(bench_gpu bench/bench_gpu.c bench/bench_gpu_contest.c bench/bench_gpu_result.c
    bench/bench_gpu_baseline.c bench/shapes.c bench/proof.c gpu/device.c)
  set_target_properties(bench_gpu PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bench)
  target_link_libraries(bench_gpu PRIVATE gpu_kernels gemmd_kernels gemmd_cuda gemmd_flags m ${CMAKE_DL_LIBS})
  add_executable(bench_accuracy bench/bench_accuracy.c gpu/device.c)
  set_target_properties(bench_accuracy PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bench)
  target_link_libraries(bench_accuracy PRIVATE gemmd_kernels gemmd_cuda gemmd_flags m ${CMAKE_DL_LIBS})
  foreach(name streams groups)
    add_executable(bench_${name} bench/bench_${name}.c)
    set_target_properties(bench_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bench)
    target_link_libraries(bench_${name} PRIVATE gemmd_kernels gemmd_cuda gemmd_flags Threads::Threads m
      ${CMAKE_DL_LIBS})
  endforeach()

  # The backend whose calls fail as they are told: its test, and a daemon to try it on.
  file(GLOB backend CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*/*.c)
  add_library(gemmd_cuda_inject OBJECT ${backend} fault/inject.c)
  target_compile_definitions(gemmd_cuda_inject PUBLIC GM_CUDA_INJECT=1 PRIVATE GM_HAVE_CUDA=1)
  target_link_libraries(gemmd_cuda_inject PUBLIC gemmd_flags gemmd_cuda)
  gm_test(test_gpu_backend gpu gpu/test_gpu_backend.c gpu/test_gpu_backend_faults.c
    unit/test_cpu_case.c unit/test_cpu_try.c LIBRARIES gemmd_cuda_inject gemmd_kernels
    Threads::Threads m ${CMAKE_DL_LIBS})
  add_executable(gemmd_inject ${PROJECT_SOURCE_DIR}/server/main.c)
  target_link_libraries(gemmd_inject PRIVATE gemmd_cuda_inject gemmd_server)
endif()

# The simulator's counts of the same runs.
if(NOT GEMMD_SANITIZE)
  add_executable(profile_sim sim/profile_sim.c gpu/profiled.c)
  target_link_libraries(profile_sim PRIVATE gemmd_kernels gemmd_flags)
endif()
