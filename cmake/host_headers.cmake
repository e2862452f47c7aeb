# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Headers under the names by which host programs of TT-Metalium include its interface: lines "NAME HEADER" of
# host_names.txt. Each is generated and includes one header of the library.
set(TOWPATH_HOST_NAMES ${PROJECT_SOURCE_DIR}/src/towpath/tenstorrent/metalium/host_names.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${TOWPATH_HOST_NAMES})
set(TOWPATH_INTERFACE_HEADERS "")
file(STRINGS ${TOWPATH_HOST_NAMES} names REGEX "^[^#]")
foreach(line IN LISTS names)
  string(REPLACE " " ";" words "${line}")
  list(GET words 0 name)
  list(GET words 1 header)
  set(path ${PROJECT_BINARY_DIR}/generated/${name})
  file(CONFIGURE OUTPUT ${path} @ONLY
    CONTENT "#pragma once\n#include \"towpath/tenstorrent/metalium/${header}\"\n")
  list(APPEND TOWPATH_INTERFACE_HEADERS ${path})
endforeach()
