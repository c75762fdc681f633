# Packages, by cpack in a build folder: attmirror-VERSION-SYSTEM.tar.gz with everything that has been built, and on Debian
#
#   attmirror         the command, its man pages and completions
#   libattmirror0     the shared library
#   libattmirror-dev  headers, CMake and pkg-config files, the link to the shared library
#
# The preset `package` is made for this. In a build folder with a static library there are two packages: the command needs
# no other, and libattmirror-dev has the archive. The optional libraries are in no Debian package.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

set(CPACK_PACKAGE_NAME attmirror)
set(CPACK_PACKAGE_VENDOR "The attmirror authors")  # as in CITATION.cff
set(CPACK_PACKAGE_CONTACT "The attmirror authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "softmax attention trained by mirror descent")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_FILE_NAME "attmirror-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TGZ)
find_program(ATTMIRROR_DPKG_DEB dpkg-deb)
mark_as_advanced(ATTMIRROR_DPKG_DEB)
if(ATTMIRROR_DPKG_DEB)
  list(APPEND CPACK_GENERATOR DEB)
endif()

# One package for each component.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_PACKAGE_CONTACT}")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
# What the programs link decides which libraries they depend on; ours is in the build folder, not in the system.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian/debian_files.cmake")

set(about "attmirror trains softmax attention by mirror descent in any lp geometry and
by other optimizers, says which tokens the attention selects, and solves the
max-margin problem that training converges to, with a certificate.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME attmirror)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "${about}
.
This package has the command attmirror.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "libattmirror${PROJECT_VERSION_MAJOR}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/cmake/debian/triggers")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${about}
.
This package has the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libattmirror-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${about}
.
This package has the headers and the files for CMake and pkg-config.")
# What the headers include, and for a static library what it links.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libeigen3-dev (>= 3.4)")
if(BUILD_SHARED_LIBS)
  set(CPACK_COMPONENTS_ALL command library development)
  set(CPACK_COMPONENT_COMMAND_DEPENDS library)
  set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
else()
  set(CPACK_COMPONENTS_ALL command development)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    ", libfmt-dev, nlohmann-json3-dev, libzip-dev, zlib1g-dev, libsqlite3-dev")
endif()
if(NOT TARGET attmirror_command)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL command)
endif()

include(CPack)
