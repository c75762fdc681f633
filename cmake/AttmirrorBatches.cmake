# Sources that are compiled together.
#
# Most of the time that a source of ours takes is spent on headers (Eigen, fmt, JSON, CLI11). A batch is one compilation of
# several sources, which reads them once: a quarter to a half of the time. Names in anonymous namespaces are therefore
# different within a batch; a batch holds what is about one thing, so that they would be anyway.
#
# ATTMIRROR_UNITY=OFF compiles every source by itself: less to do after a change to one file (the preset dev has it).
option(ATTMIRROR_UNITY "Compile sources in batches: much faster for a fresh build" ON)

# attmirror_add_batch(TARGET NAME SOURCES...): adds sources to a target, as one batch.
function(attmirror_add_batch target name)
  set(sources "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND sources "${source}")
  endforeach()
  target_sources(${target} PRIVATE ${sources})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ATTMIRROR_UNITY} UNITY_BUILD_MODE GROUP)
  # The folder of the target looks at properties of sources, not the one that adds them.
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${name}")
endfunction()
