# What consumer.cmake and packages.cmake have in common: checks of an installed or unpacked tree.

# run(WHAT COMMAND...): stops with the output unless the command succeeds; leaves it in `output`.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

# Debian puts libraries one folder deeper, below lib/x86_64-linux-gnu. Leaves what matches in `found`.
function(find_in prefix pattern)
  string(REPLACE "lib*/" "lib*/*-linux-gnu*/" deeper "${pattern}")
  file(GLOB files "${prefix}/${pattern}" "${prefix}/${deeper}")
  set(found "${files}" PARENT_SCOPE)
endfunction()

function(expect_files prefix)
  foreach(pattern IN LISTS ARGN)
    find_in("${prefix}" "${pattern}")
    if(NOT found)
      message(FATAL_ERROR "there is no ${pattern} in ${prefix}")
    endif()
  endforeach()
endfunction()

function(expect_no_files prefix)
  foreach(pattern IN LISTS ARGN)
    find_in("${prefix}" "${pattern}")
    if(found)
      message(FATAL_ERROR "${found} should not be in ${prefix}")
    endif()
  endforeach()
endfunction()

# expect_unaware(PREFIX FOLDERS...): no text file of an installed tree names a folder where it was built.
function(expect_unaware prefix)
  file(GLOB_RECURSE text_files "${prefix}/*.cmake" "${prefix}/*.hpp" "${prefix}/*.pc" "${prefix}/share/*")
  foreach(file IN LISTS text_files)
    file(READ "${file}" content)
    foreach(folder IN LISTS ARGN)
      string(FIND "${content}" "${folder}" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "the installed ${file} names the folder ${folder}")
      endif()
    endforeach()
  endforeach()
endfunction()

function(expect_version command version)
  run("${command} --version" "${command}" --version)
  if(NOT output MATCHES "attmirror ${version}")
    message(FATAL_ERROR "attmirror --version says \"${output}\", expected ${version} in it")
  endif()
endfunction()

# What comes with the command: its pages name what they are about, and the scripts are for the right shells.
function(expect_manual prefix)
  expect_files("${prefix}" share/man/man1/attmirror.1* share/man/man1/attmirror-train.1*
    share/man/man1/attmirror-next-token.1* share/bash-completion/completions/attmirror
    share/zsh/site-functions/_attmirror share/fish/vendor_completions.d/attmirror.fish)
  foreach(expected IN ITEMS "bash-completion/completions/attmirror|complete -F" "zsh/site-functions/_attmirror|#compdef attmirror"
                            "fish/vendor_completions.d/attmirror.fish|complete -c attmirror")
    string(REPLACE "|" ";" expected "${expected}")
    list(GET expected 0 file)
    list(GET expected 1 words)
    file(READ "${prefix}/share/${file}" content)
    string(FIND "${content}" "${words}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${prefix}/share/${file} lacks \"${words}\"")
    endif()
  endforeach()
endfunction()

# find_package_says(PREFIX ARGUMENTS): what a project hears that calls find_package(attmirror ARGUMENTS); leaves
# `attmirror_found` (0 or 1) and `output`.
function(find_package_says prefix arguments)
  string(MD5 name "${arguments}")
  set(folder "${WORK_DIR}/find/${name}")
  file(WRITE "${folder}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES CXX)\n"
       "find_package(attmirror ${arguments})\n"
       "if(TARGET attmirror::attmirror AND NOT attmirror_FOUND)\n  message(FATAL_ERROR \"not found, but defined\")\nendif()\n"
       "message(STATUS \"attmirror_FOUND=\${attmirror_FOUND}\")\n")
  run("find_package(attmirror ${arguments})" "${CMAKE_COMMAND}" -S "${folder}" -B "${folder}/build" -G Ninja
      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  # CMake breaks long sentences into lines.
  string(REGEX REPLACE "[ \n]+" " " text "${output}")
  set(output "${text}" PARENT_SCOPE)
  if(text MATCHES "attmirror_FOUND=(1|TRUE)")
    set(attmirror_found 1 PARENT_SCOPE)
  else()
    set(attmirror_found 0 PARENT_SCOPE)
  endif()
endfunction()

# expect_not_found(PREFIX ARGUMENTS SENTENCE): find_package() refuses, in this sentence.
function(expect_not_found prefix arguments sentence)
  find_package_says("${prefix}" "${arguments}")
  string(FIND "${output}" "${sentence}" at)
  if(attmirror_found OR at EQUAL -1)
    message(FATAL_ERROR "find_package(attmirror ${arguments}) should refuse with \"${sentence}\", but said:\n${output}")
  endif()
endfunction()

# build_consumer(PREFIX OPTIONS...): the user's project of CONSUMER_DIR, built against the tree and run.
function(build_consumer prefix)
  run("configuring the consumer" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${WORK_DIR}/build" -G Ninja
      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
      "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wno-missing-field-initializers -Werror" ${ARGN})
  run("building the consumer" "${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
  run("running the consumer" "${WORK_DIR}/build/consumer")
  message(STATUS "the consumer says: ${output}")
endfunction()

# expect_core_alone(PREFIX): a program against attmirror::core links no SQLite, and no header of a JSON library is read for it.
function(expect_core_alone prefix)
  set(build "${WORK_DIR}/core")
  run("configuring the consumer of the core" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${build}" -G Ninja -DCORE_ALONE=ON
      "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" ${ARGN})
  run("building the consumer of the core" "${CMAKE_COMMAND}" --build "${build}")
  run("running the consumer of the core" "${build}/consumer")
  message(STATUS "the consumer of the core says: ${output}")
  run("ldd" ldd "${build}/consumer")
  if(output MATCHES "sqlite")
    message(FATAL_ERROR "a program against the core links SQLite:\n${output}")
  endif()
  run("ninja -t deps" ninja -C "${build}" -t deps)
  if(NOT output MATCHES "attmirror/core.hpp" OR output MATCHES "nlohmann|sqlite3|fmt/|toml")
    message(FATAL_ERROR "a program against the core reads headers that it does not need:\n${output}")
  endif()
endfunction()
