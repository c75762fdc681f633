# pip shows the last lines of a configuration that failed. So what is missing for a wheel is said at once, in one sentence
# with the names of Debian's packages, instead of one library at a time.
set(missing_packages "")
foreach(entry IN ITEMS Eigen3=libeigen3-dev fmt=libfmt-dev nlohmann_json=nlohmann-json3-dev ZLIB=zlib1g-dev LibZip=libzip-dev
                       Random123=librandom123-dev SQLite3=libsqlite3-dev tomlplusplus=libtomlplusplus-dev CLI11=libcli11-dev)
  string(REPLACE "=" ";" pair "${entry}")
  list(GET pair 0 library)
  list(GET pair 1 package)
  find_package(${library} QUIET)
  if(NOT ${library}_FOUND)
    list(APPEND missing_packages ${package})
  endif()
endforeach()
if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "attmirror is compiled against libraries that are not here: apt-get install ${missing_packages}")
endif()
