# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
# What the compiled module offers, for type checkers and editors: _core.pyi. It is written beside the
# Python sources, where an editable installation and mypy look for it.
set(TOWPATH_STUB ${CMAKE_CURRENT_SOURCE_DIR}/python/towpath/_core.pyi)
nanobind_add_stub(_core_stub
  MODULE _core
  OUTPUT ${TOWPATH_STUB}
  PYTHON_PATH $<TARGET_FILE_DIR:_core>
  DEPENDS _core)
install(FILES ${TOWPATH_STUB} DESTINATION towpath COMPONENT towpath)
