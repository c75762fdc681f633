# Install and export: find_package(attmirror) then gives attmirror::attmirror and what it is made of, attmirror::core,
# attmirror::sweep and attmirror::papers; COMPONENTS core or sweep gives that one with what it stands on, and looks for no
# library that others need. COMPONENTS corpus gives attmirror::corpus, COMPONENTS cuda attmirror::cuda, and COMPONENTS deep
# attmirror::deep, attmirror::trainer and attmirror::views, for which it looks for LibTorch.
#
# `cmake --install` takes what has been built and says what it leaves out, so that it works after the quick start, which
# builds the command alone. Its components (cmake --install BUILD --component NAME):
#
#   command       attmirror with its man pages and completions
#   library       the shared libraries core, sweep and papers; nothing where they are static
#   development   headers, CMake and pkg-config files, the static libraries or the links to the shared ones
#   corpus, cuda, deep   the optional libraries, each with what a user of it needs; deep has the program attmirror-deep, too
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attmirror")
set(doc_files "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE")

# All objects are position-independent, so nothing needs to be compiled again when a build folder goes from static to
# shared libraries or back; unless a macro told them which of the two they are for.
foreach(library IN ITEMS attmirror_core attmirror_sweep attmirror_papers attmirror_corpus attmirror_cuda attmirror_deep attmirror_trainer attmirror_views)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES DEFINE_SYMBOL "")
  endif()
endforeach()

# Programs find shared libraries of ours by their own place, so that an installed tree can be moved. LibTorch stays where
# it was found.
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH libraries_from_programs "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  foreach(program IN ITEMS attmirror_command attmirror_deep_command)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries_from_programs}")
    endif()
  endforeach()
  foreach(library IN ITEMS attmirror_sweep attmirror_papers attmirror_corpus attmirror_cuda attmirror_deep attmirror_trainer attmirror_views)
    if(TARGET ${library})
      set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
  endforeach()
endif()
foreach(target IN ITEMS attmirror_deep attmirror_trainer attmirror_views attmirror_deep_command)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endforeach()

# The core, which everything else stands on.
install(CODE "
  if(NOT EXISTS \"$<TARGET_FILE:attmirror_core>\")
    message(FATAL_ERROR \"The attmirror library has not been built, so there is nothing to install: run cmake --build ${PROJECT_BINARY_DIR} first.\")
  endif()" ALL_COMPONENTS)
install(TARGETS attmirror_core EXPORT attmirrorTargets
  RUNTIME COMPONENT library
  LIBRARY COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development)
install(EXPORT attmirrorTargets NAMESPACE attmirror:: DESTINATION "${package_dir}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attmirror" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development PATTERN "deep" EXCLUDE PATTERN "deep.hpp" EXCLUDE)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attmirrorConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/attmirrorConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attmirrorConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attmirrorConfig.cmake" "${PROJECT_BINARY_DIR}/attmirrorConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake" DESTINATION "${package_dir}" COMPONENT development)
install(FILES ${doc_files} DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT library)
install(FILES ${doc_files} DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)

# For pkg-config: attmirror-core, and attmirror for all. Who links static libraries needs those inside them, too, with or
# without --static.
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
# attmirror_write_pc(NAME DESCRIPTION LIBRARIES REQUIRES)
function(attmirror_write_pc pc_name pc_description pc_libraries pc_requires)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/attmirror.pc.in" "${PROJECT_BINARY_DIR}/${pc_name}.pc" @ONLY)
endfunction()
set(core_requires "eigen3 >= 3.4")
set(all_requires "attmirror-core")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND core_requires ", fmt, libzip, zlib")
  string(APPEND all_requires ", fmt, sqlite3")
endif()
attmirror_write_pc(attmirror-core "${PROJECT_DESCRIPTION} (training and margins alone)" "-lattmirror_core" "${core_requires}")
attmirror_write_pc(attmirror "${PROJECT_DESCRIPTION}" "-lattmirror_papers -lattmirror_sweep" "${all_requires}")
install(FILES "${PROJECT_BINARY_DIR}/attmirror-core.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# attmirror_install_part(COMPONENT NAME TARGETS... [EXPORT SET]): a part that is left out as a whole where one of its
# TARGETS has not been built. NAME is what the message calls it.
function(attmirror_install_part component name)
  cmake_parse_arguments(part "" "EXPORT" "" ${ARGN})
  set(part_component ${component})
  set(part_name "${name}")
  set(part_targets ${part_UNPARSED_ARGUMENTS})
  string(MAKE_C_IDENTIFIER "${name}" folder)
  # A folder of its own because its install script is a file of its own, which can return early.
  add_subdirectory("${PROJECT_SOURCE_DIR}/cmake/part" "${PROJECT_BINARY_DIR}/part/${folder}")
endfunction()

attmirror_install_part(development attmirror::sweep attmirror_sweep EXPORT attmirrorSweepTargets)
if(TARGET attmirror_papers)
  attmirror_install_part(development attmirror::papers attmirror_papers EXPORT attmirrorPapersTargets)
endif()
if(TARGET attmirror_command)
  attmirror_install_part(command "The command attmirror" attmirror_command)
endif()
attmirror_install_part(corpus attmirror::corpus attmirror_corpus EXPORT attmirrorCorpusTargets)
if(TARGET attmirror_cuda)
  attmirror_install_part(cuda attmirror::cuda attmirror_cuda EXPORT attmirrorCudaTargets)
endif()
if(TARGET attmirror_deep)
  set(deep_libraries attmirror_deep attmirror_trainer)
  if(TARGET attmirror_views)
    list(APPEND deep_libraries attmirror_views)
  endif()
  attmirror_install_part(deep attmirror::deep ${deep_libraries} EXPORT attmirrorDeepTargets)
endif()
if(TARGET attmirror_deep_command)
  attmirror_install_part(deep "The program attmirror-deep" attmirror_deep_command)
endif()
