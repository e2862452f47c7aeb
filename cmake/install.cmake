# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# The C++ package: `cmake --install BUILD --component towpath_cpp --prefix WHERE`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TOWPATH_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/towpath)

install(TARGETS towpath EXPORT towpathTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT towpath_cpp
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT towpath_cpp
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT towpathTargets NAMESPACE towpath::
  DESTINATION ${TOWPATH_PACKAGE_DIR} COMPONENT towpath_cpp)

configure_package_config_file(cmake/towpathConfig.cmake.in
  ${PROJECT_BINARY_DIR}/towpathConfig.cmake INSTALL_DESTINATION ${TOWPATH_PACKAGE_DIR})
# Before 1.0, a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/towpathConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/towpathConfig.cmake ${PROJECT_BINARY_DIR}/towpathConfigVersion.cmake
  DESTINATION ${TOWPATH_PACKAGE_DIR} COMPONENT towpath_cpp)
# The shipped machines, to read and to copy; the library has them built in.
install(DIRECTORY machines/json/ DESTINATION ${CMAKE_INSTALL_DATADIR}/towpath/machines
  COMPONENT towpath_cpp)
# What CUDA sources include, and the struct that the library shares with them.
install(DIRECTORY src/towpath/gpu/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/towpath/gpu/include COMPONENT towpath_cpp)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT towpath_cpp)
