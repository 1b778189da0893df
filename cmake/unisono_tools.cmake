# Installs the command line, with the man pages and completion scripts that it writes itself, and
# what Grafana and Prometheus need for its metrics.
if(CMAKE_CROSSCOMPILING OR UNISONO_SANITIZE)
  return()
endif()
set(manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/man/unisono.1
                   COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:unisono> -DOUT=${manual}
                           -P ${PROJECT_SOURCE_DIR}/cmake/install/manual.cmake
                   DEPENDS unisono cmake/install/manual.cmake
                   COMMENT "Writing the man pages" VERBATIM)
add_custom_target(unisono_manual ALL DEPENDS ${manual}/man/unisono.1)

install(TARGETS unisono DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY ${manual}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
install(FILES ${manual}/completion/unisono
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
install(FILES ${manual}/completion/_unisono
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT tools)
install(FILES ${manual}/completion/unisono.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
install(FILES contrib/grafana/unisono.json contrib/grafana/unisono-rules.yml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/unisono/grafana COMPONENT tools)
