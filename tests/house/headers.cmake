# cmake -D SOURCE_DIR=... -D COMPILER=... -D EIGEN_DIR=... [-D TORCH_DIRS=...] -P headers.cmake
#
# Each public header compiles on its own, without warnings, with nothing but Eigen and the standard library in sight, and
# with the definition that the target attmirror::attmirror brings along (base/aligned.hpp asks for it). Those of `deep`
# see LibTorch besides, and are left out where there is none.
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
set(broken "")
foreach(header IN LISTS headers)
  set(options "")
  if(header MATCHES "^attmirror/deep[/.]")
    if(NOT TORCH_DIRS)
      math(EXPR count "${count} - 1")
      continue()
    endif()
    set(options ${torch_options})
  endif()
  # -include instead of the header as the main file, where g++ would warn of #pragma once.
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror
                          -DEIGEN_MAX_ALIGN_BYTES=64 "-I${SOURCE_DIR}/include" -isystem "${EIGEN_DIR}" ${options}
                          -include "${header}" -x c++ /dev/null
                  RESULT_VARIABLE status ERROR_VARIABLE error)
  if(NOT status EQUAL 0)
    string(APPEND broken "\n${header}:\n${error}")
  endif()
endforeach()
if(broken)
  message(FATAL_ERROR "headers that do not compile on their own:${broken}")
endif()
message(STATUS "${count} headers compile on their own")
