# The subcommands of `attmirror deep` that draw no pages: for src/cli/deep and for tests/device.
set(deep_training_sources tokenize.cpp train.cpp)
list(TRANSFORM deep_training_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
