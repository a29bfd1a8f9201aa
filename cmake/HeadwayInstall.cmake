# What `cmake --install` writes: the library, its plug-in and the binary, the public headers, and a package for
# find_package(headway). Own files find each other relative to themselves; LibTorch stays where its wheel is.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headway)
set(torch_rpath ${HEADWAY_TORCH_DIR}/lib)

set(libraries headway)
if(TARGET headway_cuda)
  list(APPEND libraries headway_cuda)
endif()
set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN;${torch_rpath}")
set_target_properties(headway_cli PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${torch_rpath}")

install(TARGETS headway EXPORT headwayTargets)
install(TARGETS headway_cli)
if(TARGET headway_cuda)
  install(TARGETS headway_cuda)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/headway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headwayTargets NAMESPACE headway:: DESTINATION ${package_folder})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headwayConfig.cmake.in
  ${PROJECT_BINARY_DIR}/headwayConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headwayConfig.cmake ${PROJECT_BINARY_DIR}/headwayConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TorchWheel.cmake DESTINATION ${package_folder})
