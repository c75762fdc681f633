# cmake -D SOURCE_DIR=... -P verifier.cmake: the verifier of max-margin answers shares no code with the solvers.
#
# Its files include only what is listed here, and do not form constraints by the function that the solvers use.
cmake_minimum_required(VERSION 3.25)

set(files certificate.cpp raw_constraints.hpp raw_constraints.cpp)
set(allowed
    margin/raw_constraints.hpp  # its own
    attmirror/margin/certificate.hpp attmirror/margin/constraints.hpp attmirror/margin/problems.hpp  # what users give it
    attmirror/base/error.hpp
    base/numbers.hpp  # infinity and NaN
    base/vector_math.hpp  # powers, whose error bounds are held by tests against MPFR
    mirror/spectral.hpp  # singular values
    fmt/format.h)

set(wrong "")
foreach(name IN LISTS files)
  set(file "${SOURCE_DIR}/src/margin/${name}")
  file(STRINGS "${file}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE ".*[<\"](.*)[>\"].*" "\\1" header "${line}")
    if(header MATCHES "[/.]" AND NOT header IN_LIST allowed)
      string(APPEND wrong "\n  ${file}: ${line}")
    endif()
  endforeach()
  file(STRINGS "${file}" calls REGEX "(^|[^a-z_])constraints\\(\\*?data")
  foreach(line IN LISTS calls)
    string(APPEND wrong "\n  ${file}: ${line}")
  endforeach()
endforeach()
if(wrong)
  message(FATAL_ERROR "the verifier uses what it is to check:${wrong}")
endif()
list(LENGTH files count)
message(STATUS "${count} files of the verifier stand on their own")
