# cmake -D BUILD_DIR=... -D WORK_DIR=... -D CONSUMER_DIR=... -D COMPILER=... -D VERSION=... -D DEEP=0|1 -P consumer.cmake
#
# What a user gets from `cmake --install`: all files are there, none of them knows where it was built, and a project
# that finds the package builds and runs. The installed tree is moved before use: it must not matter where it lies.
cmake_minimum_required(VERSION 3.25)

# run(WHAT COMMAND...): stops with the output unless the command succeeds; leaves it in `output`.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/installed")
file(RENAME "${WORK_DIR}/installed" "${WORK_DIR}/moved")
set(prefix "${WORK_DIR}/moved")

set(expected bin/attmirror include/attmirror/attmirror.hpp include/attmirror/descent/descend.hpp
    lib*/libattmirror.* lib*/cmake/attmirror/attmirrorConfig.cmake lib*/cmake/attmirror/attmirrorConfigVersion.cmake
    lib*/cmake/attmirror/attmirrorTargets.cmake share/doc/attmirror/LICENSE share/doc/attmirror/NOTICE)
foreach(pattern IN LISTS expected)
  # Debian puts libraries one folder deeper, below lib/x86_64-linux-gnu.
  string(REPLACE "lib*/" "lib*/*-linux-gnu*/" deeper "${pattern}")
  file(GLOB found "${prefix}/${pattern}" "${prefix}/${deeper}")
  if(NOT found)
    message(FATAL_ERROR "cmake --install leaves no ${pattern}")
  endif()
endforeach()

file(GLOB_RECURSE text_files "${prefix}/*.cmake" "${prefix}/*.hpp")
foreach(file IN LISTS text_files)
  file(READ "${file}" content)
  foreach(folder IN ITEMS "${BUILD_DIR}" "${WORK_DIR}/installed")
    string(FIND "${content}" "${folder}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "the installed ${file} names the folder ${folder}")
    endif()
  endforeach()
endforeach()

run("attmirror --version" "${prefix}/bin/attmirror" --version)
if(NOT output MATCHES "attmirror ${VERSION}")
  message(FATAL_ERROR "attmirror --version says \"${output}\", expected ${VERSION} in it")
endif()

run("configuring the consumer" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${WORK_DIR}/build" -G Ninja "-DWITH_DEEP=${DEEP}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wno-missing-field-initializers -Werror")
run("building the consumer" "${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("running the consumer" "${WORK_DIR}/build/consumer")
message(STATUS "the consumer says: ${output}")
run("running the consumer of corpus" "${WORK_DIR}/build/consumer_corpus")
message(STATUS "the consumer of corpus says: ${output}")
if(DEEP)
  run("running the consumer of deep" "${WORK_DIR}/build/consumer_deep")
  message(STATUS "the consumer of deep says: ${output}")
  run("running the consumer of the trainer" "${WORK_DIR}/build/consumer_trainer")
endif()

# A component that there is not must not be found.
file(WRITE "${WORK_DIR}/unknown/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(unknown LANGUAGES CXX)\n"
     "find_package(attmirror QUIET COMPONENTS shallow)\nif(attmirror_FOUND)\n  message(FATAL_ERROR \"shallow was found\")\nendif()\n")
run("asking for an unknown component" "${CMAKE_COMMAND}" -S "${WORK_DIR}/unknown" -B "${WORK_DIR}/unknown/build" -G Ninja
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}")

# A version that this package does not promise to be compatible with must not be found.
file(WRITE "${WORK_DIR}/future/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(future LANGUAGES CXX)\n"
     "find_package(attmirror 99.0 QUIET)\nif(attmirror_FOUND)\n  message(FATAL_ERROR \"99.0 was found\")\nendif()\n")
run("asking for version 99.0" "${CMAKE_COMMAND}" -S "${WORK_DIR}/future" -B "${WORK_DIR}/future/build" -G Ninja
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}")
