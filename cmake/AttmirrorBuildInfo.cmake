# What src/base/build_info.cpp is told about the build.
#
# attmirror_build_info() writes two headers: one when the build is configured (version, compiler, components), and one
# at every build with the commit, by running this very file as a script. That one is rewritten only if the commit has
# changed, so an ordinary build compiles nothing because of it.

if(CMAKE_SCRIPT_MODE_FILE)
  # cmake -D SOURCE_DIR=... -D GIT=... -D OUTPUT=... -P AttmirrorBuildInfo.cmake
  set(commit "unknown")
  if(GIT)
    # An unpacked release within somebody else's repository must not take that one's commit for its own.
    execute_process(COMMAND "${GIT}" -C "${SOURCE_DIR}" rev-parse --show-prefix
                    OUTPUT_VARIABLE prefix RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed AND prefix STREQUAL "")
      execute_process(COMMAND "${GIT}" --no-optional-locks -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12
                              --exclude=*
                      OUTPUT_VARIABLE described RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(NOT failed AND described MATCHES "^[0-9a-f]+(-dirty)?$")
        set(commit "${described}")
      endif()
    endif()
  endif()
  file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Made by cmake/AttmirrorBuildInfo.cmake at every build.
#pragma once

#include <string_view>

namespace attmirror::build_config {

inline constexpr std::string_view commit = "@commit@";

}  // namespace attmirror::build_config
]])
  return()
endif()

function(attmirror_write_build_config)
  set(component_list "\"core\"")
  set(component_count 1)
  get_property(components GLOBAL PROPERTY ATTMIRROR_COMPONENTS)
  foreach(entry IN LISTS components)
    if(entry MATCHES "^([^|]+)\\|on\\|")
      string(APPEND component_list ", \"${CMAKE_MATCH_1}\"")
      math(EXPR component_count "${component_count} + 1")
    endif()
  endforeach()
  set(build_type "${CMAKE_BUILD_TYPE}")
  if(build_type STREQUAL "")
    set(build_type "no build type")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/src/base/build_config.hpp.in"
                 "${PROJECT_BINARY_DIR}/generated/attmirror_build_config.hpp" @ONLY)
endfunction()

set(ATTMIRROR_BUILD_INFO_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(attmirror_build_info)
  find_package(Git QUIET)
  set(header "${PROJECT_BINARY_DIR}/generated/attmirror_build_commit.hpp")
  add_custom_target(attmirror_build_commit
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "GIT=${GIT_EXECUTABLE}" -D "OUTPUT=${header}"
            -P "${ATTMIRROR_BUILD_INFO_SCRIPT}"
    BYPRODUCTS "${header}" COMMENT "Looking up the commit" VERBATIM)
  add_dependencies(attmirror_core attmirror_build_commit)
  target_include_directories(attmirror_core PRIVATE "${PROJECT_BINARY_DIR}/generated")
  # Components are known once all rooms have had their say. (tests/device builds some of them from a project of its own.)
  set(top "${CMAKE_SOURCE_DIR}")
  if(DEFINED attmirror_SOURCE_DIR)
    set(top "${attmirror_SOURCE_DIR}")
  endif()
  cmake_language(DEFER DIRECTORY "${top}" CALL attmirror_write_build_config)
endfunction()
