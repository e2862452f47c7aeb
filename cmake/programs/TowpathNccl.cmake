# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
#
# Tests of programs that use NCCL, on hosts without a GPU:
#
#   execute_process(COMMAND towpath nccl cmake OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
#   include(${file})
#   towpath_nccl_test(sum SOURCES sum.cu MACHINE dgx-h100)
#
# towpath_nccl_test(NAME SOURCES FILE... [MACHINE NAME] [HOSTS N] [RANKS_PER_HOST N]
#                   [PROCESSES_PER_HOST N] [RELEASE 2.27.5] [ENVIRONMENT NAME=VALUE...]
#                   [FLAGS FLAG...] [ARGUMENTS WORD...])
# compiles a program and adds a test that runs it.

find_program(TOWPATH_COMMAND towpath REQUIRED)

function(towpath_nccl_test name)
  cmake_parse_arguments(PARSE_ARGV 1 given ""
    "MACHINE;HOSTS;RANKS_PER_HOST;PROCESSES_PER_HOST;RELEASE" "SOURCES;ENVIRONMENT;FLAGS;ARGUMENTS")
  if(given_UNPARSED_ARGUMENTS OR NOT given_SOURCES)
    message(FATAL_ERROR "towpath_nccl_test(${name}) takes SOURCES and options, "
      "and not '${given_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT given_MACHINE)
    set(given_MACHINE dgx-h100)
  endif()
  if(NOT given_HOSTS)
    set(given_HOSTS 1)
  endif()
  set(release "")
  if(given_RELEASE)
    set(release --release ${given_RELEASE})
  endif()
  set(where --machine ${given_MACHINE} --hosts ${given_HOSTS})
  if(given_RANKS_PER_HOST)
    list(APPEND where --ranks-per-host ${given_RANKS_PER_HOST})
  endif()
  if(given_PROCESSES_PER_HOST)
    list(APPEND where --processes-per-host ${given_PROCESSES_PER_HOST})
  endif()
  set(variables "")
  foreach(variable IN LISTS given_ENVIRONMENT)
    list(APPEND variables --env ${variable})
  endforeach()
  list(TRANSFORM given_FLAGS PREPEND --flag=)
  list(TRANSFORM given_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${program}
    COMMAND ${TOWPATH_COMMAND} nccl compile ${given_SOURCES} -o ${program} ${release} ${given_FLAGS}
    DEPENDS ${given_SOURCES} VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${program})
  add_test(NAME ${name}
    COMMAND ${TOWPATH_COMMAND} nccl run ${where} ${release} ${variables} -- ${program}
      ${given_ARGUMENTS})
endfunction()
