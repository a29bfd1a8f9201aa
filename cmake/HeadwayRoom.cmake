# headway_room(NAME SOURCES file... [LIBRARIES target...]): one folder of src/, compiled into the headway library.
# All rooms share include/ and src/ as include roots; which room may include which is checked by tools/check_rooms.py.
function(headway_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(headway_${name} OBJECT ${ROOM_SOURCES})
  target_include_directories(headway_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(headway_${name} PUBLIC ${ROOM_LIBRARIES})
  target_link_libraries(headway_${name} PRIVATE headway_warnings)
  set_property(GLOBAL APPEND PROPERTY HEADWAY_ROOMS headway_${name})
endfunction()
