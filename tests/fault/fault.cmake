# A daemon whose device fails as it is told, for http/test_device_loss.py.
add_executable(gemmd_fake fault/gemmd_fake.c unit/faulty_backend.c ${PROJECT_SOURCE_DIR}/server/main.c)
target_link_libraries(gemmd_fake PRIVATE gemmd_server gemmd_flags)

# The cuda backend, with calls that fail as they are told, on a runtime of CUDA that needs neither a
# GPU nor the toolkit.
file(GLOB backend CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*/*.c)
list(FILTER backend EXCLUDE REGEX "/(cublas_load|address_range|clock)\\.c$")
set(kernels ${PROJECT_SOURCE_DIR}/kernels)
add_library(gemmd_cuda_fake OBJECT ${backend} fault/fake_cuda.c fault/fake_cublas.c fault/inject.c
  fault/cuda_case.c ${kernels}/op.c ${kernels}/layout.c ${kernels}/buffer_pool.c ${kernels}/choose/profile.c
  ${kernels}/gpu.c ${kernels}/graph.c ${kernels}/roof.c ${kernels}/task.c ${kernels}/cpu/reference.c)
target_link_libraries(gemmd_cuda_fake PUBLIC gemmd_flags gemmd_proto)
target_include_directories(gemmd_cuda_fake BEFORE PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/fault/cuda)
target_compile_definitions(gemmd_cuda_fake PUBLIC GM_CUDA_INJECT=1 GM_HAVE_CUDA=1)
foreach(name cuda_run cuda_times cuda_rows cuda_faults)
  gm_test(test_${name} unit fault/test_${name}.c LIBRARIES gemmd_cuda_fake Threads::Threads m)
endforeach()
