# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# Unity builds: the sources of a folder as a few units, so that what they include is read and instantiated
# a few times instead of once per file.

# Sources that include themselves once per instruction set.
set(TOWPATH_ALONE "/transport/(reduction|streaming)\\.cpp$")
# Sources whose own names are those of a neighbour.
set(TOWPATH_NAMESAKES "/bindings/(module|mailbox|traffic)\\.cpp$|/kernels/route_lists\\.cpp$|/machine/(load|symmetry)\\.cpp$|/study/rings\\.cpp$")
# Files of one unit: more of them build faster from nothing, fewer after a change.
set(TOWPATH_UNIT_FILES 12)

# towpath_unity(TARGET SOURCES)
function(towpath_unity target sources)
  if(NOT TOWPATH_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(SORT sources)
  set(folder "")
  foreach(source IN LISTS sources)
    if(source MATCHES "${TOWPATH_ALONE}" OR source MATCHES "${TOWPATH_NAMESAKES}")
      continue()
    endif()
    cmake_path(GET source PARENT_PATH parent)
    if(NOT parent STREQUAL folder)
      set(folder ${parent})
      set(count 0)
    endif()
    math(EXPR unit "${count} / ${TOWPATH_UNIT_FILES}")
    math(EXPR count "${count} + 1")
    cmake_path(RELATIVE_PATH parent BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src/towpath OUTPUT_VARIABLE name)
    string(REPLACE "/" "_" name "${name}_${unit}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name})
  endforeach()
endfunction()
