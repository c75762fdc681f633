# The hot kernels, compiled once for each instruction set.
#
# ATTMIRROR_KERNELS says which sets: `all` (SSE2, AVX2, AVX-512: for packages, which run on every x86-64 machine) or
# `native` (the best one of this machine alone, for a third of the compiling: for a build that stays here).
set(ATTMIRROR_KERNELS "all" CACHE STRING "Instruction sets to compile kernels for: all, or native (the best of this machine)")
set_property(CACHE ATTMIRROR_KERNELS PROPERTY STRINGS all native)

# The best set of this machine, as the compiler finds it.
function(attmirror_native_isa result)
  set(best sse2)
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E -x c++ /dev/null
                  OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "ATTMIRROR_KERNELS is native, and ${CMAKE_CXX_COMPILER} does not know -march=native: use all")
  endif()
  if(macros MATCHES "__AVX2__ 1" AND macros MATCHES "__FMA__ 1")
    set(best avx2)
    if(macros MATCHES "__AVX512F__ 1" AND macros MATCHES "__AVX512DQ__ 1" AND macros MATCHES "__AVX512VL__ 1"
       AND macros MATCHES "__AVX512BW__ 1")
      set(best avx512)
    endif()
  endif()
  set(${result} "${best}" PARENT_SCOPE)
endfunction()

if(ATTMIRROR_KERNELS STREQUAL "native")
  attmirror_native_isa(ATTMIRROR_KERNEL_SETS)
elseif(ATTMIRROR_KERNELS STREQUAL "all")
  set(ATTMIRROR_KERNEL_SETS sse2 avx2 avx512)
else()
  message(FATAL_ERROR "ATTMIRROR_KERNELS is ${ATTMIRROR_KERNELS}: expected all or native")
endif()

# What src/base/dispatch.hpp must know.
function(attmirror_define_kernel_sets target)
  foreach(isa IN ITEMS sse2 avx2 avx512)
    string(TOUPPER "${isa}" name)
    if(isa IN_LIST ATTMIRROR_KERNEL_SETS)
      target_compile_definitions(${target} INTERFACE ATTMIRROR_KERNELS_${name}=true)
    else()
      target_compile_definitions(${target} INTERFACE ATTMIRROR_KERNELS_${name}=false)
    endif()
  endforeach()
endfunction()

# attmirror_add_kernels(LIBRARY SOURCE): compiles one source of a library once for each instruction set.
#
# The source puts all it defines into namespace attmirror::ATTMIRROR_ISA, which is a different name in each build
# (isa_sse2, isa_avx2, isa_avx512), or into an anonymous namespace inside it. It must not include headers that
# define inline functions outside these namespaces (the standard library's, Eigen's): the linker would be free to
# keep their AVX-512 copy for everyone. tests/house/kernel_symbols.cmake checks that.
function(attmirror_add_kernels library source)
  cmake_path(GET source STEM stem)
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  # Sanitizers make large loops of what is inlined here; at -O3 a source takes a minute and a half.
  set(optimization -O3)
  if(ATTMIRROR_SANITIZE)
    set(optimization -O1)
  endif()
  set(flags_sse2 "")
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma)
  foreach(isa IN LISTS ATTMIRROR_KERNEL_SETS)
    set(target attmirror_${stem}_${isa})
    add_library(${target} OBJECT "${source}")
    target_compile_definitions(${target} PRIVATE ATTMIRROR_ISA=isa_${isa} ATTMIRROR_ISA_${isa}=1)
    target_compile_options(${target} PRIVATE ${optimization} ${flags_${isa}})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PRIVATE attmirror_build_flags)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY ATTMIRROR_KERNEL_OBJECTS $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()
