# headway_jinja: the Jinja engine that renders chat templates, compiled from the files that tools/fetch_jinja.py fetches.
include_guard(GLOBAL)

set(HEADWAY_JINJA_DIR ${PROJECT_SOURCE_DIR}/.cache/jinja CACHE PATH "Folder of the Jinja engine's sources")
if(NOT EXISTS ${HEADWAY_JINJA_DIR}/stamp)
  message(FATAL_ERROR "The Jinja engine's sources in ${HEADWAY_JINJA_DIR} are absent.\n"
    "Fetch them with `${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/fetch_jinja.py` (tools/setup.sh does), "
    "or set HEADWAY_JINJA_DIR to a folder that has them.")
endif()

add_library(headway_jinja STATIC
  ${HEADWAY_JINJA_DIR}/jinja/lexer.cpp
  ${HEADWAY_JINJA_DIR}/jinja/parser.cpp
  ${HEADWAY_JINJA_DIR}/jinja/runtime.cpp
  ${HEADWAY_JINJA_DIR}/jinja/string.cpp
  ${HEADWAY_JINJA_DIR}/jinja/value.cpp
  ${HEADWAY_JINJA_DIR}/unicode.cpp)
# src/tokenizer/jinja gives the engine its JSON type. Its own folder "jinja" must not be a root: it has a string.h.
target_include_directories(headway_jinja SYSTEM PUBLIC ${HEADWAY_JINJA_DIR})
target_include_directories(headway_jinja PRIVATE ${PROJECT_SOURCE_DIR}/src/tokenizer/jinja)
target_link_libraries(headway_jinja PRIVATE nlohmann_json::nlohmann_json)
# Its debug assertions would end the process on a malformed template, which it reports by exceptions otherwise.
target_compile_options(headway_jinja PRIVATE -w -O1 -g0 -DNDEBUG)
set_target_properties(headway_jinja PROPERTIES CXX_VISIBILITY_PRESET hidden)
