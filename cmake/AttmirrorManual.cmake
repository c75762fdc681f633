# attmirror_write_manual(TARGET [COMPLETIONS]): whenever TARGET has been linked, it writes its man pages, and the completion
# scripts of all shells, below share/TARGET of the build folder, as they are to lie below share when installed. This very
# file does it, run as a script.

if(CMAKE_SCRIPT_MODE_FILE)
  # cmake -D PROGRAM=... -D FOLDER=... -D COMPLETIONS=ON|OFF -P AttmirrorManual.cmake
  function(run)
    execute_process(COMMAND "${PROGRAM}" ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE error)
    if(NOT status EQUAL 0)
      list(JOIN ARGN " " words)
      message(FATAL_ERROR "${PROGRAM} ${words} failed (${status}): ${error}")
    endif()
  endfunction()
  # Pages of subcommands that there are no more must go.
  file(REMOVE_RECURSE "${FOLDER}")
  run(man --all --quiet -o "${FOLDER}/man/man1")
  if(COMPLETIONS)
    set(bash bash-completion/completions/attmirror)
    set(zsh zsh/site-functions/_attmirror)
    set(fish fish/vendor_completions.d/attmirror.fish)
    foreach(shell IN ITEMS bash zsh fish)
      cmake_path(GET ${shell} PARENT_PATH parent)
      file(MAKE_DIRECTORY "${FOLDER}/completions/${parent}")
      run(completion ${shell} OUTPUT_FILE "${FOLDER}/completions/${${shell}}")
    endforeach()
  endif()
  return()
endif()

set(ATTMIRROR_MANUAL_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(attmirror_write_manual target)
  cmake_parse_arguments(arg "COMPLETIONS" "" "" ${ARGN})
  # A program for another machine cannot be asked.
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${target}>" -D "FOLDER=${PROJECT_BINARY_DIR}/share/${target}"
            -D "COMPLETIONS=${arg_COMPLETIONS}" -P "${ATTMIRROR_MANUAL_SCRIPT}"
    VERBATIM)
endfunction()
