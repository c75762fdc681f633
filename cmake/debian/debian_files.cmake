# Run by cpack between collecting the files and packing them: what only a Debian package has, or has in another way. Each
# package gets a folder share/doc/PACKAGE with copyright, NOTICE and the changelog, its man pages are compressed, and
# programs go without a search path for libraries, because the library lies where the system looks.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
find_program(gzip gzip REQUIRED)
set(source "${CMAKE_CURRENT_LIST_DIR}/../..")

# compress(FILE): without name and time inside, so that the same build gives the same bytes.
function(compress file)
  execute_process(COMMAND "${gzip}" -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" name)
  set(package "${CPACK_DEBIAN_${name}_PACKAGE_NAME}")
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}")
  file(REMOVE_RECURSE "${root}/share/doc")
  set(doc "${root}/share/doc/${package}")
  file(MAKE_DIRECTORY "${doc}")
  configure_file("${source}/cmake/debian/copyright" "${doc}/copyright" COPYONLY)
  configure_file("${source}/NOTICE" "${doc}/NOTICE" COPYONLY)
  configure_file("${source}/CHANGELOG.md" "${doc}/changelog" COPYONLY)
  compress("${doc}/changelog")
  file(GLOB pages "${root}/share/man/man1/*.1")
  foreach(page IN LISTS pages)
    compress("${page}")
  endforeach()
  if(EXISTS "${root}/bin/attmirror")
    file(RPATH_REMOVE FILE "${root}/bin/attmirror")
  endif()
endforeach()
