# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Headers under the names by which programs for TT-Metalium and tt-umd include their interfaces: lines "NAME HEADER" of
# lists of names. Each is generated and includes one header of the folder of its list.
set(TOWPATH_INTERFACE_HEADERS "")
foreach(list metalium/host_names.txt host/umd_names.txt)
  set(path ${PROJECT_SOURCE_DIR}/src/towpath/tenstorrent/${list})
  get_filename_component(folder ${list} DIRECTORY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} names REGEX "^[^#]")
  foreach(line IN LISTS names)
    string(REPLACE " " ";" words "${line}")
    list(GET words 0 name)
    list(GET words 1 header)
    set(path ${PROJECT_BINARY_DIR}/generated/${name})
    file(CONFIGURE OUTPUT ${path} @ONLY
      CONTENT "#pragma once\n#include \"towpath/tenstorrent/${folder}/${header}\"\n")
    list(APPEND TOWPATH_INTERFACE_HEADERS ${path})
  endforeach()
endforeach()
