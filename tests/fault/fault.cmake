# A daemon whose device fails as it is told, for http/test_device_loss.py.
add_executable(gemmd_fake fault/gemmd_fake.c unit/faulty_backend.c ${PROJECT_SOURCE_DIR}/server/main.c)
target_link_libraries(gemmd_fake PRIVATE gemmd_server gemmd_flags)
