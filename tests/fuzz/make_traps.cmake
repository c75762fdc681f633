# A trap for every function of attmirror that the parsers refer to and that is not compiled with them: kernels, solvers,
# training loops. No parser calls them; a fuzzer that got there all the same would stop at once, as at any other crash.
#
#   cmake -D NM=... -D OBJECTS=FILE -D OUTPUT=traps.cpp -P make_traps.cmake
#
# OBJECTS lists the object files, one a line.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${OBJECTS}" objects)
execute_process(COMMAND "${NM}" -P ${objects} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" symbols "${symbols}")
set(defined "")
set(wanted "")
foreach(line IN LISTS symbols)
  if(line MATCHES "^([A-Za-z0-9_]*9attmirror[A-Za-z0-9_.]*) ([A-Za-z])")
    if(CMAKE_MATCH_2 STREQUAL "U")
      list(APPEND wanted "${CMAKE_MATCH_1}")
    else()
      list(APPEND defined "${CMAKE_MATCH_1}")
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES wanted)
list(REMOVE_DUPLICATES defined)
list(REMOVE_ITEM wanted ${defined})
list(SORT wanted)
set(text "// Made by make_traps.cmake.\n")
foreach(symbol IN LISTS wanted)
  if(symbol MATCHES "^_ZT")  # the table or the type of a class
    string(APPEND text "__asm__(\".data\\n.globl ${symbol}\\n.balign 16\\n${symbol}: .zero 512\\n.text\");\n")
  else()
    # A report names what stands before the address at which it stopped: the nop, which is this function's.
    string(APPEND text "__asm__(\".globl ${symbol}\\n${symbol}: nop\\nud2\");\n")
  endif()
endforeach()
list(LENGTH wanted count)
message(STATUS "fuzzing: ${count} functions that no parser calls are traps")
file(WRITE "${OUTPUT}" "${text}")
