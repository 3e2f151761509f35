# find_package(mekik-sdk) and find_package(mekik) are the same.
include(${CMAKE_CURRENT_LIST_DIR}/../mekik/mekik-config.cmake)
