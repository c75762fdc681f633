# Arrays and safetensors files: a list of its own, since tests/device builds nothing else of this room.
set(tensor_file_sources array.cpp safetensors.cpp)
list(TRANSFORM tensor_file_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
attmirror_add_batch(attmirror_core data_tensors ${tensor_file_sources})
