# cmake -D SOURCE_DIR=... -D COMPILER=... -D EIGEN_DIR=... [-D TORCH_DIRS=...] -P headers.cmake
#
# Each public header compiles on its own, without warnings, with nothing but Eigen and the standard library in sight, and
# with the definition that the target attmirror::attmirror brings along (base/matrix.hpp asks for it). Those of `deep`
# that include LibTorch, whose headers take ten seconds each time, are compiled together, the last name first; that each
# can stand alone is seen by its source, which includes it before all others. They are left out where LibTorch is not there.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE headers RELATIVE "${SOURCE_DIR}/include" "${SOURCE_DIR}/include/attmirror/*.hpp")
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers below ${SOURCE_DIR}/include: is it the right folder?")
endif()
set(torch_options "")
foreach(folder IN LISTS TORCH_DIRS)
  cmake_path(NORMAL_PATH folder)
  if(NOT folder STREQUAL "/usr/include")  # where compilers look anyway, and must not look first
    list(APPEND torch_options -isystem "${folder}")
  endif()
endforeach()
# Those of `deep` that see LibTorch, themselves or through another of them.
set(with_torch "")
file(GLOB deep_headers RELATIVE "${SOURCE_DIR}/include" "${SOURCE_DIR}/include/attmirror/deep.hpp"
     "${SOURCE_DIR}/include/attmirror/deep/*.hpp")
foreach(round RANGE 9)
  foreach(header IN LISTS deep_headers)
    file(STRINGS "${SOURCE_DIR}/include/${header}" includes REGEX "^#include <(torch|ATen|c10|attmirror/deep)/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include <(.*)>.*$" "\\1" included "${line}")
      if(NOT included MATCHES "^attmirror/" OR included IN_LIST with_torch)
        list(APPEND with_torch "${header}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES with_torch)
endforeach()

set(broken "")
# -include instead of the header as the main file, where g++ would warn of #pragma once.
macro(check name)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror
                          -DEIGEN_MAX_ALIGN_BYTES=64 "-I${SOURCE_DIR}/include" -isystem "${EIGEN_DIR}" ${ARGN}
                          -x c++ /dev/null
                  RESULT_VARIABLE status ERROR_VARIABLE error)
  if(NOT status EQUAL 0)
    string(APPEND broken "\n${name}:\n${error}")
  endif()
endmacro()
set(together "")
foreach(header IN LISTS headers)
  if(NOT header IN_LIST with_torch)
    check("${header}" -include "${header}")
  elseif(TORCH_DIRS)
    list(PREPEND together -include "${header}")
  else()
    math(EXPR count "${count} - 1")
  endif()
endforeach()
if(TORCH_DIRS)
  check("headers of deep" ${torch_options} ${together})
endif()
if(broken)
  message(FATAL_ERROR "headers that do not compile on their own:${broken}")
endif()
message(STATUS "${count} headers compile on their own")
