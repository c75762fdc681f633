# Install and export: find_package(attmirror) then gives attmirror::attmirror. COMPONENTS corpus gives attmirror::corpus,
# COMPONENTS cuda attmirror::cuda, and COMPONENTS deep attmirror::deep, attmirror::trainer and attmirror::views, for which
# it looks for LibTorch; the latter two where they were built.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attmirror")

install(TARGETS attmirror EXPORT attmirrorTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attmirror" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT attmirrorTargets NAMESPACE attmirror:: DESTINATION "${package_dir}")
install(TARGETS attmirror_corpus EXPORT attmirrorCorpusTargets)
install(EXPORT attmirrorCorpusTargets NAMESPACE attmirror:: DESTINATION "${package_dir}")
if(TARGET attmirror_cuda)
  install(TARGETS attmirror_cuda EXPORT attmirrorCudaTargets)
  install(EXPORT attmirrorCudaTargets NAMESPACE attmirror:: DESTINATION "${package_dir}")
endif()
if(TARGET attmirror_deep)
  install(TARGETS attmirror_deep attmirror_trainer EXPORT attmirrorDeepTargets)
  if(TARGET attmirror_views)
    install(TARGETS attmirror_views EXPORT attmirrorDeepTargets)
  endif()
  install(EXPORT attmirrorDeepTargets NAMESPACE attmirror:: DESTINATION "${package_dir}")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attmirrorConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/attmirrorConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attmirrorConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attmirrorConfig.cmake" "${PROJECT_BINARY_DIR}/attmirrorConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibZip.cmake" DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET attmirror_command)
  install(TARGETS attmirror_command)
endif()
if(TARGET attmirror_deep_command)
  install(TARGETS attmirror_deep_command)
endif()
