# Writes what the program knows of itself: man pages and completion scripts.
#   cmake -DPROGRAM=... -DOUT=... -P manual.cmake
execute_process(COMMAND ${PROGRAM} help --json OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${OUT}/man ${OUT}/completion)
execute_process(COMMAND ${PROGRAM} help --man OUTPUT_FILE ${OUT}/man/unisono.1
                COMMAND_ERROR_IS_FATAL ANY)
string(JSON commands LENGTH ${help} commands)
math(EXPR last "${commands} - 1")
foreach(index RANGE ${last})
  string(JSON name GET ${help} commands ${index} name)
  execute_process(COMMAND ${PROGRAM} help ${name} --man OUTPUT_FILE ${OUT}/man/unisono-${name}.1
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(file IN ITEMS bash=unisono zsh=_unisono fish=unisono.fish)
  string(REPLACE "=" ";" pair ${file})
  list(GET pair 0 shell)
  list(GET pair 1 name)
  execute_process(COMMAND ${PROGRAM} completion ${shell} OUTPUT_FILE ${OUT}/completion/${name}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
