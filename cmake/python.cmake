# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# The compiled part of the Python package: one module that needs only the C++ runtime, so that a
# wheel runs where {fmt}, Boost and Highway are not installed.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB TOWPATH_BINDINGS CONFIGURE_DEPENDS src/towpath/bindings/*.cpp)
nanobind_add_module(_core NB_STATIC ${TOWPATH_BINDINGS})
foreach(library IN ITEMS fmt::fmt hwy::hwy)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    string(REGEX REPLACE ":.*" "" name ${library})
    set_source_files_properties(cmake/static/${name}.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    target_sources(_core PRIVATE cmake/static/${name}.cpp)
    target_sources(towpath_shmem PRIVATE cmake/static/${name}.cpp)
    target_sources(towpath_ttsim PRIVATE cmake/static/${name}.cpp)
  endif()
endforeach()
target_compile_options(_core PRIVATE -fno-semantic-interposition)
target_precompile_headers(_core PRIVATE ${TOWPATH_COMMON_HEADERS} <nanobind/nanobind.h>
  <nanobind/stl/string.h> <nanobind/stl/vector.h>)
towpath_unity(_core "${TOWPATH_BINDINGS}")
target_link_libraries(_core PRIVATE towpath hwy::hwy towpath_warnings)
# The shared libraries whose functions cmake/static defines are then not needed.
target_link_options(_core PRIVATE LINKER:--as-needed)
install(TARGETS _core LIBRARY DESTINATION towpath COMPONENT towpath)
# Installs the files of a folder. A file of an earlier version that the folder no longer has is removed,
# because sources are compiled by their ending.
function(towpath_install_folder folder destination)
  install(CODE "
    set(source \"${PROJECT_SOURCE_DIR}/${folder}\")
    set(installed \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${destination}\")
    file(GLOB_RECURSE files RELATIVE \"\${installed}\" \"\${installed}/*\")
    foreach(file IN LISTS files)
      if(NOT EXISTS \"\${source}/\${file}\")
        file(REMOVE \"\${installed}/\${file}\")
      endif()
    endforeach()" COMPONENT towpath)
  install(DIRECTORY ${folder}/ DESTINATION ${destination} COMPONENT towpath)
endfunction()
# What CUDA sources include, beside the module.
towpath_install_folder(src/towpath/gpu/include towpath/gpu_include)
# What is compiled with the host part of NCCL.
towpath_install_folder(src/towpath/virtual_gpu towpath/virtual_gpu_source/towpath/virtual_gpu)
# A function of CMake for tests of programs that use NCCL.
install(DIRECTORY cmake/programs/ DESTINATION towpath/cmake COMPONENT towpath)
# The library of kernels that is compiled at its first use.
towpath_install_folder(penny towpath/penny_source)
# OpenSHMEM for programs, and its header.
target_link_options(towpath_shmem PRIVATE LINKER:--as-needed)
install(TARGETS towpath_shmem LIBRARY DESTINATION towpath COMPONENT towpath)
towpath_install_folder(src/towpath/shmem/include towpath/shmem_include)
# The simulator that tt-umd loads.
target_link_options(towpath_ttsim PRIVATE LINKER:--as-needed)
install(TARGETS towpath_ttsim LIBRARY DESTINATION towpath COMPONENT towpath)
# Sources that are used where they are get what pip makes of installed ones: bytecode. Where Python
# does not keep it (PYTHONDONTWRITEBYTECODE), compiling is a third of a small command.
install(CODE "execute_process(
  COMMAND ${Python_EXECUTABLE} -m compileall -q ${PROJECT_SOURCE_DIR}/python/towpath)"
  COMPONENT towpath)
include(cmake/stubs.cmake)
