# find_package(mekik) gives mekik::sdk, the headers, and
#   mekik_add_plugin(<kind>_<name> <source>...)   a plugin library with the file name that the program looks for
include(${CMAKE_CURRENT_LIST_DIR}/mekik-targets.cmake)

function(mekik_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE mekik::sdk)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Exactly one symbol is seen from outside, whatever else is linked in.
  target_link_options(${name} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mekik.map -Wl,--no-undefined)
endfunction()
