# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# The headers of kernels in source form as a source file: a program compiles kernels wherever it is
# moved to. Names under which a header is also included are lines "NAME HEADER" of names.txt.
set(TOWPATH_KERNEL_INCLUDE ${PROJECT_SOURCE_DIR}/src/towpath/tenstorrent/metalium/kernel_include)
file(GLOB_RECURSE TOWPATH_KERNEL_HEADERS CONFIGURE_DEPENDS ${TOWPATH_KERNEL_INCLUDE}/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${TOWPATH_KERNEL_HEADERS} ${TOWPATH_KERNEL_INCLUDE}/names.txt)
set(TOWPATH_KERNEL_HEADER_ROWS "")
foreach(path IN LISTS TOWPATH_KERNEL_HEADERS)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${TOWPATH_KERNEL_INCLUDE} OUTPUT_VARIABLE name)
  file(READ ${path} text)
  string(APPEND TOWPATH_KERNEL_HEADER_ROWS "    {\"${name}\", R\"header(${text})header\"},\n")
endforeach()
file(STRINGS ${TOWPATH_KERNEL_INCLUDE}/names.txt names REGEX "^[^#]")
foreach(line IN LISTS names)
  string(REPLACE " " ";" words "${line}")
  list(GET words 0 name)
  list(GET words 1 header)
  string(APPEND TOWPATH_KERNEL_HEADER_ROWS
    "    {\"${name}\", \"#pragma once\\n#include \\\"${header}\\\"\\n\"},\n")
endforeach()
configure_file(cmake/kernel_headers.cpp.in generated/kernel_headers.cpp @ONLY)
target_sources(towpath PRIVATE ${PROJECT_BINARY_DIR}/generated/kernel_headers.cpp)
