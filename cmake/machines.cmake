# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# The shipped machines as a source file, so that a program finds them wherever it is moved to.
file(GLOB TOWPATH_MACHINE_FILES CONFIGURE_DEPENDS machines/json/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TOWPATH_MACHINE_FILES})
list(LENGTH TOWPATH_MACHINE_FILES TOWPATH_MACHINE_COUNT)
set(TOWPATH_MACHINE_ROWS "")
foreach(path IN LISTS TOWPATH_MACHINE_FILES)
  cmake_path(GET path STEM name)
  file(READ ${path} text)
  string(APPEND TOWPATH_MACHINE_ROWS "    {\"${name}\", R\"json(${text})json\"},\n")
endforeach()
configure_file(cmake/shipped_machines.cpp.in generated/shipped_machines.cpp @ONLY)
target_sources(towpath PRIVATE ${PROJECT_BINARY_DIR}/generated/shipped_machines.cpp)
