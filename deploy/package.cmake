# package.cmake - a Debian package of all that is installed: cd build/release && cpack -G DEB.
#
# It installs on the Debian that it was built on and on later ones. libmicrohttpd is within the daemon
# where the system's is too old (deploy/deps.sh); the other libraries are dependencies.
# Documents for users and operators lie as in the checkout, so that their links to each other hold.
install(FILES LICENSE RENAME copyright DESTINATION share/doc/gemmd COMPONENT man)
install(FILES CHANGELOG.md NOTICE README.md SECURITY.md DESTINATION share/doc/gemmd COMPONENT man)
install(FILES deploy/README.md DESTINATION share/doc/gemmd/deploy COMPONENT man)
install(FILES proto/PROTOCOL.md DESTINATION share/doc/gemmd/proto COMPONENT man)
if(EXISTS ${PROJECT_SOURCE_DIR}/build/deps/share/doc/libmicrohttpd/copyright)
  install(FILES build/deps/share/doc/libmicrohttpd/copyright RENAME copyright.libmicrohttpd
    DESTINATION share/doc/gemmd COMPONENT man)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gemmd)
set(CPACK_PACKAGE_VENDOR gemmd)
set(CPACK_PACKAGE_CONTACT "The gemmd project <gemmd@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "matrix operations over HTTP, and clients for them")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # the simulator reads the symbols and line numbers of its own program
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "gemmd transposes, multiplies, adds and flips matrices on NVIDIA GPUs, on the CPU,
and on a simulated GPU that explains kernels line by line. With the daemon come
gemmctl, which asks it from a shell, and libgemmd, which does so from C.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcurl4-openssl-dev, libjansson-dev") # for libgemmd.a
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(script IN ITEMS postinst prerm postrm triggers)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/${script})
endforeach()
# Without these two CPack makes no package, or one that names no libraries that it needs. CPack lists
# what it stages in the files by which `uninstall` goes, which would remove the files of a package: so
# those of `cmake --install` are put aside until it has staged.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/package_tools.cmake @ONLY CONTENT [[
find_program(FILE_TOOL file)
find_program(SHLIBDEPS_TOOL dpkg-shlibdeps)
if(CPACK_GENERATOR STREQUAL "DEB" AND (NOT FILE_TOOL OR NOT SHLIBDEPS_TOOL))
  message(FATAL_ERROR "a package takes the programs file and dpkg-shlibdeps: apt install file dpkg-dev")
endif()
if(NOT EXISTS "@CMAKE_BINARY_DIR@/installed") # or a CPack before this one was interrupted
  file(GLOB lists "@CMAKE_BINARY_DIR@/install_manifest*.txt")
  file(MAKE_DIRECTORY "@CMAKE_BINARY_DIR@/installed")
  file(COPY ${lists} DESTINATION "@CMAKE_BINARY_DIR@/installed")
endif()
]])
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/package_tools.cmake)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/package_staged.cmake @ONLY CONTENT [[
file(GLOB staged "@CMAKE_BINARY_DIR@/install_manifest*.txt")
file(REMOVE ${staged})
file(GLOB lists "@CMAKE_BINARY_DIR@/installed/*.txt")
file(COPY ${lists} DESTINATION "@CMAKE_BINARY_DIR@")
file(REMOVE_RECURSE "@CMAKE_BINARY_DIR@/installed")
]])
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_BINARY_DIR}/package_staged.cmake)
include(CPack)

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/deploy/uninstall.cmake ${CMAKE_BINARY_DIR})
