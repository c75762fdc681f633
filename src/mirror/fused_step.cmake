# The fused step of optimizers: driver, exact arithmetic, kernels. A list of its own, since tests/device builds nothing else
# of this room.
set(fused_step_sources exact_step.cpp fast_step.cpp fused_step.cpp lp_map.cpp make_step_plan.cpp)
list(TRANSFORM fused_step_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
attmirror_add_batch(attmirror_core mirror_steps ${fused_step_sources})
foreach(kernels double_step_loops power_kernels step_loops)
  attmirror_add_kernels(attmirror_core "${CMAKE_CURRENT_LIST_DIR}/${kernels}.cpp")
endforeach()
