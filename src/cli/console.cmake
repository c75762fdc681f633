# What every program of ours has, whatever its subcommands: for src/cli and for tests that build one subcommand alone.
set(console_sources command_line.cpp console.cpp environment.cpp help.cpp options.cpp papers_cited.cpp screen.cpp)
list(TRANSFORM console_sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
