# What `cmake --install` writes: the library, its plug-in and the binary, the public headers, and a package for
# find_package(headway). Own files find each other relative to themselves; LibTorch stays where its wheel is.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headway)

# installed_target(name own-libraries install-argument...)
function(installed_target name own_libraries)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "${own_libraries};${HEADWAY_TORCH_DIR}/lib")
  install(TARGETS ${name} ${ARGN})
endfunction()

installed_target(headway "$ORIGIN" EXPORT headwayTargets)
installed_target(headway_cli "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(TARGET headway_cuda)
  installed_target(headway_cuda "$ORIGIN" LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})  # libheadway.so looks beside itself
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/headway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headwayTargets NAMESPACE headway:: DESTINATION ${package_folder})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headwayConfig.cmake.in
  ${PROJECT_BINARY_DIR}/headwayConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headwayConfig.cmake ${PROJECT_BINARY_DIR}/headwayConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TorchWheel.cmake DESTINATION ${package_folder})
