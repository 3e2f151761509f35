# find_package(mekik-sdk) gives mekik::sdk, the headers, and
#   mekik_add_plugin(<kind>_<name> <source>... [LINK <target>...])   a plugin library with the file name that the program looks for
#   mekik_add_plugin_test(<name> <source>...)                        a test with the fake host; MEKIK_PLUGIN_FOLDER is where the plugins are
# Where OpenSSL's headers are (libssl-dev): mekik::reference, the reference operations, and mekik::reference_backend, a whole backend to
# derive from; a plugin backend_<name> is linked with the latter.
include(${CMAKE_CURRENT_LIST_DIR}/mekik-targets.cmake)
find_package(OpenSSL QUIET)
if(OpenSSL_FOUND AND CMAKE_CXX_COMPILER_LOADED)
  include(${CMAKE_CURRENT_LIST_DIR}/mekik-reference-targets.cmake)
endif()

function(mekik_add_plugin name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  if(name MATCHES "^backend_")
    if(NOT TARGET mekik::reference_backend)
      message(STATUS "${name} is left out: OpenSSL's headers are not installed (libssl-dev)")
      return()
    endif()
    list(APPEND ARG_LINK mekik::reference_backend)
  endif()
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE mekik::sdk ${ARG_LINK})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  # Fast unless something else is asked for; a*b+c rounds twice wherever it is compiled, so that answers do not depend on the compiler.
  target_compile_options(${name} PRIVATE -ffp-contract=off $<$<CONFIG:>:-O2> $<$<CONFIG:>:-DNDEBUG>)
  # Exactly one symbol is seen from outside, whatever else is linked in.
  target_link_options(${name} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mekik.map -Wl,--no-undefined)
endfunction()

function(mekik_add_plugin_test name)
  find_package(Threads REQUIRED)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE mekik::sdk Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE MEKIK_PLUGIN_FOLDER="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
