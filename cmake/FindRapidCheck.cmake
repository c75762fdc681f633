# RapidCheck::RapidCheck: property-based tests.
find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h)
find_library(RAPIDCHECK_LIBRARY rapidcheck)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RapidCheck REQUIRED_VARS RAPIDCHECK_LIBRARY RAPIDCHECK_INCLUDE_DIR
                                  REASON_FAILURE_MESSAGE "install librapidcheck-dev")
mark_as_advanced(RAPIDCHECK_INCLUDE_DIR RAPIDCHECK_LIBRARY)
if(RapidCheck_FOUND AND NOT TARGET RapidCheck::RapidCheck)
  add_library(RapidCheck::RapidCheck UNKNOWN IMPORTED)
  set_target_properties(RapidCheck::RapidCheck PROPERTIES IMPORTED_LOCATION "${RAPIDCHECK_LIBRARY}"
                                                          INTERFACE_INCLUDE_DIRECTORIES "${RAPIDCHECK_INCLUDE_DIR}")
endif()
