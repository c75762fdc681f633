# The fused step of optimizers: driver, exact arithmetic, kernels. A list of its own, since tests/device builds nothing else
# of the library.
target_sources(attmirror PRIVATE
  "${CMAKE_CURRENT_LIST_DIR}/exact_step.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/fast_step.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/fused_step.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/make_step_plan.cpp")
foreach(kernels double_step_loops power_kernels step_loops)
  attmirror_add_kernels("${CMAKE_CURRENT_LIST_DIR}/${kernels}.cpp")
endforeach()
