# cmake -D SOURCE_DIR=... -D GIT=... -P clean_tree.cmake: nothing lies in the repository that does not belong there.
#
# Looked at are the files that git has or would add: no file above 1 MB, no folder of somebody's machine in a text, no
# mark of unfinished work.
cmake_minimum_required(VERSION 3.25)

if(NOT GIT OR NOT EXISTS "${SOURCE_DIR}/.git")
  message(STATUS "SKIPPED: not a git checkout")
  return()
endif()
execute_process(COMMAND "${GIT}" -C "${SOURCE_DIR}" ls-files --cached --others --exclude-standard
                OUTPUT_VARIABLE listing RESULT_VARIABLE status ERROR_VARIABLE error)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "git ls-files failed: ${error}")
endif()
string(REPLACE "\n" ";" files "${listing}")
list(REMOVE_ITEM files "")

set(wrong "")
set(file_count 0)
foreach(file IN LISTS files)
  if(EXISTS "${SOURCE_DIR}/${file}")
    math(EXPR file_count "${file_count} + 1")
    file(SIZE "${SOURCE_DIR}/${file}" size)
    if(size GREATER 1000000)
      string(APPEND wrong "\n  ${file}: ${size} bytes")
    endif()
  endif()
endforeach()
if(file_count LESS 50)
  message(FATAL_ERROR "git knows of ${file_count} files only below ${SOURCE_DIR}: is it the right folder?")
endif()

# must_not_occur(WHY PATTERN): PATTERN is an extended regular expression. The patterns are pieced together so that
# this file does not match itself.
function(must_not_occur why pattern)
  execute_process(COMMAND "${GIT}" -C "${SOURCE_DIR}" grep --untracked -nIE "${pattern}"
                  OUTPUT_VARIABLE found RESULT_VARIABLE status ERROR_VARIABLE error)
  if(status EQUAL 0)
    string(APPEND wrong "\n${why}:\n${found}")
    set(wrong "${wrong}" PARENT_SCOPE)
  elseif(NOT status EQUAL 1)
    message(FATAL_ERROR "git grep failed: ${error}")
  endif()
endfunction()
string(CONCAT machine_folder "(^|[^[:alnum:]_.$}~-])/(wo" "rk|ro" "ot|ho" "me|Us" "ers)/")
string(CONCAT unfinished "(TO" "DO|FI" "XME|XX" "X:)")
must_not_occur("a folder of one machine" "${machine_folder}")
string(CONCAT merge_mark "^(<<<<" "<<< |>>>>" ">>> )")
must_not_occur("a merge that was not finished" "${merge_mark}")
must_not_occur("a mark of unfinished work" "${unfinished}")

if(wrong)
  message(FATAL_ERROR "the tree is not clean:${wrong}")
endif()
message(STATUS "${file_count} files, all clean")
