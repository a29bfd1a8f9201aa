# What a Python wheel holds beside the Python files: the extension module, the library with its plug-in, and the binary.
# LibTorch is the one of the torch package beside it; a Python process has loaded that one already.
function(wheel_target name folder own_libraries torch_libraries)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "${own_libraries};${torch_libraries}")
  install(TARGETS ${name} LIBRARY DESTINATION headway/${folder} COMPONENT python NAMELINK_SKIP
    RUNTIME DESTINATION headway/${folder} COMPONENT python)
endfunction()

wheel_target(headway_python . "$ORIGIN/lib" "$ORIGIN/../torch/lib")
wheel_target(headway lib "$ORIGIN" "$ORIGIN/../../torch/lib")
wheel_target(headway_cli bin "$ORIGIN/../lib" "$ORIGIN/../../torch/lib")
if(TARGET headway_cuda)
  wheel_target(headway_cuda lib "$ORIGIN" "$ORIGIN/../../torch/lib")  # libheadway.so looks beside itself
endif()
