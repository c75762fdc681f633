# The subcommands of `attmirror deep` that train, and those that measure what was trained: for src/cli/deep and for tests/device.
set(deep_training_sources tokenize.cpp train.cpp)
set(deep_measuring_sources attention_map.cpp histogram.cpp model_files.cpp score.cpp score_reviews.cpp)
list(TRANSFORM deep_training_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
list(TRANSFORM deep_measuring_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
