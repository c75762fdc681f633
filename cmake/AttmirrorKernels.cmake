# attmirror_add_kernels(SOURCE): compiles one source of the library once for each instruction set.
#
# The source puts all it defines into namespace attmirror::ATTMIRROR_ISA, which is a different name in each build
# (isa_sse2, isa_avx2, isa_avx512), or into an anonymous namespace inside it. It must not include headers that
# define inline functions outside these namespaces (the standard library's, Eigen's): the linker would be free to
# keep their AVX-512 copy for everyone. tests/house/kernel_symbols.cmake checks that.
function(attmirror_add_kernels source)
  cmake_path(GET source STEM stem)
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(flags_sse2 "")
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma)
  foreach(isa IN ITEMS sse2 avx2 avx512)
    set(target attmirror_${stem}_${isa})
    add_library(${target} OBJECT "${source}")
    target_compile_definitions(${target} PRIVATE ATTMIRROR_ISA=isa_${isa} ATTMIRROR_ISA_${isa}=1)
    target_compile_options(${target} PRIVATE -O3 ${flags_${isa}})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${target} PRIVATE attmirror_build_flags)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(attmirror PRIVATE $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY ATTMIRROR_KERNEL_OBJECTS $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()
