# LibZip::LibZip. Debian's own CMake file for libzip asks for programs that the development package does not
# bring, so the header and the library are looked up here.
find_path(LIBZIP_INCLUDE_DIR zip.h)
find_library(LIBZIP_LIBRARY zip)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibZip REQUIRED_VARS LIBZIP_LIBRARY LIBZIP_INCLUDE_DIR
                                  REASON_FAILURE_MESSAGE "install libzip-dev")
mark_as_advanced(LIBZIP_INCLUDE_DIR LIBZIP_LIBRARY)
if(LibZip_FOUND AND NOT TARGET LibZip::LibZip)
  add_library(LibZip::LibZip UNKNOWN IMPORTED)
  set_target_properties(LibZip::LibZip PROPERTIES IMPORTED_LOCATION "${LIBZIP_LIBRARY}"
                                                  INTERFACE_INCLUDE_DIRECTORIES "${LIBZIP_INCLUDE_DIR}")
endif()
