# cmake --install BUILD --prefix P: the program, recipes, documents, licences, completions.
include(GNUInstallDirs)
install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep
  FILES_MATCHING PATTERN "*.toml")
# The task descriptions are part of the program; these are examples for further ones (--tasks-dir).
install(DIRECTORY tasks DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep
  FILES_MATCHING PATTERN "*.toml")
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(DIRECTORY third_party/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses
  FILES_MATCHING PATTERN "LICENSE*")

# Printed by the program itself, so that they know every command it has.
set(completions ${CMAKE_BINARY_DIR}/completions)
install(CODE "
  file(MAKE_DIRECTORY \"${completions}\")
  foreach(shell bash zsh)
    execute_process(COMMAND \"$<TARGET_FILE:lockstep>\" completion \${shell}
      OUTPUT_FILE \"${completions}/\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${completions}/bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lockstep)
install(FILES ${completions}/zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _lockstep)
