# Unit tests of proto/: one program a module.
foreach(name status matrix half number number_half number_span codec codec_raw codec_npy npy_header
    codec_csv_read codec_csv_refuse codec_csv_write codec_json_read codec_json_refuse
    codec_json_write codec_svg kserve multipart multipart_header)
  gm_test(test_${name} unit ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c LIBRARIES gemmd_proto m)
endforeach()
target_compile_definitions(test_codec_npy PRIVATE
  GM_TEST_GOLDEN="${CMAKE_CURRENT_LIST_DIR}/../golden/npy")
# So that the tests can make an allocation fail.
foreach(name codec_raw codec_npy codec_json_read multipart)
  target_link_options(test_${name} PRIVATE -Wl,--wrap=malloc,--wrap=calloc)
endforeach()
gm_test(test_codec_json_rfc8259 unit ${CMAKE_CURRENT_LIST_DIR}/test_codec_json_rfc8259.c
  LIBRARIES gemmd_proto PkgConfig::JANSSON m)
# In C++, for std::to_chars.
gm_test(test_number_f32 unit ${CMAKE_CURRENT_LIST_DIR}/test_number_f32.cc LIBRARIES gemmd_proto)
# The headers must be valid C++ too.
gm_test(test_proto_headers unit ${CMAKE_CURRENT_LIST_DIR}/test_proto_headers.cc
  LIBRARIES gemmd_proto)
