# cmake -D BUILD_DIR=... -D WORK_DIR=... -D CONSUMER_DIR=... -D COMPILER=... -D VERSION=... -D DEEP=0|1 -D CORPUS=0|1
#       -P consumer.cmake
#
# What a user gets from `cmake --install`: all files are there, none of them knows where it was built, and a project
# that finds the package builds and runs. The installed tree is moved before use: it must not matter where it lies.
#
# DEEP and CORPUS say what has been built in BUILD_DIR. What has not (after the quick start, neither) is left out as a whole,
# and find_package() says so.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/install_checks.cmake")
if(NOT DEFINED CORPUS)
  set(CORPUS 1)
endif()

file(REMOVE_RECURSE "${WORK_DIR}")
run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/installed")
set(install_output "${output}")
file(RENAME "${WORK_DIR}/installed" "${WORK_DIR}/moved")
set(prefix "${WORK_DIR}/moved")

expect_files("${prefix}" bin/attmirror include/attmirror/attmirror.hpp include/attmirror/descent/descend.hpp
  lib*/libattmirror_core.* lib*/libattmirror_sweep.* lib*/libattmirror_papers.* lib*/cmake/attmirror/attmirrorConfig.cmake
  lib*/cmake/attmirror/attmirrorConfigVersion.cmake lib*/cmake/attmirror/attmirrorTargets.cmake
  lib*/cmake/attmirror/attmirrorSweepTargets.cmake lib*/cmake/attmirror/attmirrorPapersTargets.cmake
  lib*/pkgconfig/attmirror.pc lib*/pkgconfig/attmirror-core.pc share/doc/attmirror/LICENSE
  share/doc/attmirror/NOTICE)
expect_manual("${prefix}")
expect_unaware("${prefix}" "${BUILD_DIR}" "${WORK_DIR}/installed")
expect_version("${prefix}/bin/attmirror" "${VERSION}")

build_consumer("${prefix}" "-DWITH_DEEP=${DEEP}" "-DWITH_CORPUS=${CORPUS}" -DCMAKE_BUILD_TYPE=Release)
find_package_says("${prefix}" "0.1 QUIET")
if(NOT attmirror_found)
  message(FATAL_ERROR "the core alone is not found:\n${output}")
endif()
expect_core_alone("${prefix}")
if(CORPUS)
  expect_files("${prefix}" lib*/libattmirror_corpus.* lib*/cmake/attmirror/attmirrorCorpusTargets.cmake
    include/attmirror/deep/tokenize.hpp)
  run("running the consumer of corpus" "${WORK_DIR}/build/consumer_corpus")
  message(STATUS "the consumer of corpus says: ${output}")
else()
  if(NOT install_output MATCHES "attmirror::corpus was not built and is left out")
    message(FATAL_ERROR "cmake --install does not say that it leaves corpus out:\n${install_output}")
  endif()
  expect_no_files("${prefix}" lib*/libattmirror_corpus.* lib*/cmake/attmirror/attmirrorCorpusTargets*.cmake
    include/attmirror/deep/tokenize.hpp)
  expect_not_found("${prefix}" "COMPONENTS corpus" "The component corpus is not part of the attmirror in ${prefix}: build the target")
  find_package_says("${prefix}" "QUIET OPTIONAL_COMPONENTS corpus")
  if(NOT attmirror_found)
    message(FATAL_ERROR "the core is not found where corpus is optional:\n${output}")
  endif()
endif()
if(DEEP)
  run("running the consumer of deep" "${WORK_DIR}/build/consumer_deep")
  message(STATUS "the consumer of deep says: ${output}")
  run("running the consumer of the trainer" "${WORK_DIR}/build/consumer_trainer")
else()
  expect_no_files("${prefix}" lib*/libattmirror_deep.* lib*/cmake/attmirror/attmirrorDeepTargets*.cmake bin/attmirror-deep)
  expect_not_found("${prefix}" "COMPONENTS deep" "The component deep is not part of the attmirror in ${prefix}: build with LibTorch")
endif()

# pkg-config leads to the same files, wherever they lie.
find_program(pkg_config pkg-config)
if(pkg_config)
  find_in("${prefix}" lib*/pkgconfig/attmirror.pc)
  cmake_path(GET found PARENT_PATH pc_folder)
  run("pkg-config" "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_folder}" "${pkg_config}" --variable=includedir attmirror)
  string(STRIP "${output}" include_folder)
  expect_files("${include_folder}" attmirror/attmirror.hpp)
endif()

# A component that there is not, and a version that this package does not promise to be compatible with.
expect_not_found("${prefix}" "COMPONENTS shallow" "attmirror has no component \"shallow\": expected core, sweep, papers, corpus, cuda or deep.")
expect_not_found("${prefix}" "99.0" "99.0")
