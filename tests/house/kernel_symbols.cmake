# cmake -D NM=... -D OBJECT_LIST=... -P kernel_symbols.cmake: nothing leaks out of the kernel objects.
#
# Kernel sources are compiled with instructions that not every processor has. A weak symbol there (an inline function
# or a template outside the namespaces attmirror::isa_*) may be merged with the copies of ordinary sources, and the
# linker is free to keep the AVX-512 one: the program would then die on older machines, in a place that has nothing
# to do with kernels. So each global symbol that a kernel object defines must be strong and in its own namespace.
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${OBJECT_LIST}" objects)
if(NOT objects)
  message(FATAL_ERROR "no kernel objects are listed in ${OBJECT_LIST}")
endif()

set(own_namespace "^(__odr_asan\\.)?_ZNK?9attmirror(8isa_sse2|8isa_avx2|10isa_avx512)")
set(leaks "")
set(symbol_count 0)
foreach(object IN LISTS objects)
  execute_process(COMMAND "${NM}" --defined-only --extern-only "${object}"
                  OUTPUT_VARIABLE listing RESULT_VARIABLE status ERROR_VARIABLE error)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${NM} failed on ${object}: ${error}")
  endif()
  string(REPLACE "\n" ";" lines "${listing}")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^[0-9a-f]+ ([A-Za-z]) (.+)$")
      continue()
    endif()
    set(kind "${CMAKE_MATCH_1}")
    set(symbol "${CMAKE_MATCH_2}")
    math(EXPR symbol_count "${symbol_count} + 1")
    if(kind MATCHES "[WwVvu]" OR NOT symbol MATCHES "${own_namespace}")
      string(APPEND leaks "\n  ${kind} ${symbol}\n    in ${object}")
    endif()
  endforeach()
endforeach()

if(symbol_count EQUAL 0)
  message(FATAL_ERROR "${NM} found no symbols in the kernel objects")
endif()
if(leaks)
  message(FATAL_ERROR "weak symbols, or symbols outside attmirror::isa_*, in kernel objects:${leaks}")
endif()
list(LENGTH objects object_count)
message(STATUS "${symbol_count} symbols in ${object_count} kernel objects, all strong and in their namespaces")
