# Shows on the terminal what `pip install` compiles, how long and how far. Builds that pip
# does not make, and those without a terminal, show what CMake and the compiler say.
if(SKBUILD)
  file(REMOVE ${CMAKE_BINARY_DIR}/compiled)
  string(TIMESTAMP now %s)
  file(WRITE ${CMAKE_BINARY_DIR}/begun ${now})
  cmake_host_system_information(RESULT cpus QUERY NUMBER_OF_LOGICAL_CORES)
  # Minutes of one core: the library ten, an extension for PyTorch ten.
  set(minutes 10)
  set(parts "the library")
  if(UNISONO_LIBRARIES)
    set(minutes 3)
    set(parts "unisono._core")
  endif()
  if(TARGET unisono_torch)
    string(APPEND parts " and unisono.torch for PyTorch ${torch_versions}")
    list(LENGTH torch_folders extensions)
    math(EXPR minutes "${minutes} + 10 * ${extensions}")
  endif()
  math(EXPR minutes "(${minutes} + ${cpus} - 1) / ${cpus}")
  execute_process(COMMAND sh -c "echo \"$1\" >/dev/tty" sh
    "\nunisono: compiles ${parts}: about ${minutes} min on ${cpus} CPUs. `pip install -v` shows each step."
    ERROR_QUIET)
  set_property(GLOBAL PROPERTY RULE_LAUNCH_COMPILE
               "${CMAKE_CURRENT_LIST_DIR}/progress.sh ${CMAKE_BINARY_DIR}")
endif()
