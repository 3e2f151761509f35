# What is installed beside the program, the plugins and the SDK: pages, man pages, docs; and Debian packages of it all:
#   cmake --build build/release --target man && cpack --config build/release/CPackConfig.cmake
set(man ${CMAKE_BINARY_DIR}/share/man/man1)
file(GLOB help CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/man.cmake)
add_custom_command(OUTPUT ${man}/mekik.1
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${man}
  COMMAND ${CMAKE_COMMAND} -DMEKIK=$<TARGET_FILE:mekik> -DOUT=${man} -P ${CMAKE_SOURCE_DIR}/cmake/man.cmake
  DEPENDS mekik ${help} COMMENT "Man pages from the program's help" VERBATIM)
add_custom_target(man ALL DEPENDS ${man}/mekik.1)
add_dependencies(product man)
install(DIRECTORY ${man} DESTINATION share/man)

install(DIRECTORY pipelines DESTINATION share/mekik FILES_MATCHING PATTERN "*.toml")
install(FILES LICENSE README.md DESTINATION share/doc/mekik)
install(DIRECTORY docs/ DESTINATION share/doc/mekik FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE DESTINATION share/doc/mekik RENAME copyright)
install(FILES LICENSE DESTINATION share/doc/mekik-plugins RENAME copyright COMPONENT plugins)
install(FILES LICENSE DESTINATION share/doc/mekik-dev RENAME copyright COMPONENT dev)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mekik)
set(CPACK_PACKAGE_CONTACT "mekik <mekik@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program plugins dev)
if(MEKIK_STATIC_PLUGINS)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL plugins)  # they are in the program
else()
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "mekik-plugins (= ${PROJECT_VERSION})")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME mekik)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_NAME mekik-plugins)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME mekik-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "mekik (= ${PROJECT_VERSION}), cmake (>= 3.25), g++ | clang, libssl-dev")
set(CPACK_DEBIAN_PLUGINS_PACKAGE_ENHANCES mekik)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Inference engine for language models
Runs models in the terminal and serves OpenAI's API over TCP and Unix sockets; a
pipeline file says which plugins it is composed of.")
set(CPACK_COMPONENT_PLUGINS_DESCRIPTION "Plugins of the inference engine mekik
Backends, quantization schemes, loaders, schedulers, caches, samplers, drafters
and sinks.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers to write plugins of mekik with
The binary contract in C, a C++20 wrapper, a host to test with, the reference
operations, and a project to begin with.")
include(CPack)
