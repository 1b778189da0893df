# unisono/torch/_C for each PyTorch of UNISONO_TORCH_FOLDERS; nothing where there is none. Each lies in
# a folder of its own, unisono/torch/extensions/MINOR: `unisono.torch` loads that of the PyTorch it finds.
option(UNISONO_TORCH "Build unisono.torch where PyTorch is installed" ON)
set(UNISONO_TORCH_FOLDERS "" CACHE STRING "The `torch` folders to build for; empty: that of the interpreter")
if(NOT UNISONO_TORCH)
  message(STATUS "Without unisono.torch, as asked for")
  return()
endif()

# By PYTHONPATH pip hides from a build what the environment has installed: PyTorch is looked for
# there all the same. It is not imported: its headers are enough.
set(torch_folders ${UNISONO_TORCH_FOLDERS})
if(NOT torch_folders)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH --unset=PYTHONNOUSERSITE ${Python_EXECUTABLE} -c
            "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_folders OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE torch_missing ERROR_QUIET)
  if(torch_missing)
    message(WARNING "PyTorch is not installed for ${Python_EXECUTABLE}: no unisono.torch. "
                    "Install again once it is")
    return()
  endif()
endif()
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/torch-versions.txt tested_versions REGEX "^[0-9]")
list(JOIN tested_versions " " tested_words)

option(UNISONO_UNITY "Compile several files as one: PyTorch's headers take longer than the rest" ON)
set(UNISONO_TORCH_OPTIMIZATION -O2 CACHE STRING "Of unisono/torch/_C; -O1 compiles in two thirds of the time")
add_library(unisono_torch_sources INTERFACE)
target_sources(unisono_torch_sources INTERFACE
               csrc/torch/backend.cc csrc/torch/backend_collectives.cc
               csrc/torch/backend_devices.cc csrc/torch/backend_groups.cc
               csrc/torch/backend_memory.cc csrc/torch/convert.cc csrc/torch/flight_recorder.cc
               csrc/torch/meeting.cc csrc/torch/meeting_store.cc csrc/torch/module.cc
               csrc/torch/on_device.cc csrc/torch/peer_memory.cc csrc/torch/pieces.cc csrc/torch/pieces_collectives.cc
               csrc/torch/reconfigure.cc csrc/torch/store_host.cc csrc/torch/window.cc
               csrc/torch/streams.cc csrc/torch/symmetric_memory.cc csrc/torch/symmetric_ops.cc
               csrc/torch/symmetric_signals.cc csrc/torch/work.cc csrc/common/signals.cc)
# PyTorch's flight recorder is a header that uses fmt, which PyTorch has but does not export.
set_source_files_properties(csrc/torch/flight_recorder.cc PROPERTIES
  COMPILE_DEFINITIONS FMT_HEADER_ONLY=1 SKIP_UNITY_BUILD_INCLUSION ON)
add_custom_target(unisono_torch ALL)

# A library that is loaded into a process of the PyTorch in FOLDER.
function(use_torch name folder)
  # PyTorch's headers are not ours to warn about. Its pybind11 is among them: another one would make
  # our backend a type that its Python side does not know.
  target_include_directories(${name} SYSTEM PRIVATE ${folder}/include ${folder}/include/torch/csrc/api/include)
  foreach(part IN LISTS ARGN)
    target_link_libraries(${name} PRIVATE ${folder}/lib/lib${part}.so)
  endforeach()
  # PyTorch is loaded before us; its folder is not a part of the file.
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")
endfunction()

foreach(folder IN LISTS torch_folders)
  file(STRINGS ${folder}/version.py torch_version REGEX "^__version__ = ")
  string(REGEX MATCH "([0-9]+\\.[0-9]+)\\.[0-9a-z]+" torch_version "${torch_version}")
  set(minor ${CMAKE_MATCH_1})
  if(NOT minor)
    message(FATAL_ERROR "${folder} is no PyTorch: version.py names no version")
  endif()
  message(STATUS "unisono.torch for PyTorch ${torch_version} in ${folder}")
  list(APPEND torch_versions ${torch_version})
  if(NOT minor IN_LIST tested_versions)
    message(WARNING "unisono.torch is tested with PyTorch ${tested_words}; this is ${torch_version}, "
                    "which is tried")
  endif()
  Python_add_library(unisono_torch_${minor} MODULE WITH_SOABI)
  add_dependencies(unisono_torch unisono_torch_${minor})
  set_target_properties(unisono_torch_${minor} PROPERTIES
                        OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/torch/${minor}
                        CXX_VISIBILITY_PRESET hidden
                        UNITY_BUILD ${UNISONO_UNITY} UNITY_BUILD_BATCH_SIZE 4)
  target_compile_definitions(unisono_torch_${minor} PRIVATE
                             TORCH_EXTENSION_NAME=_C USE_C10D_GLOO UNISONO_TORCH_VERSION="${torch_version}"
                             UNISONO_TORCH_TESTED="${tested_words}")
  target_include_directories(unisono_torch_${minor} PRIVATE csrc ${CMAKE_CURRENT_SOURCE_DIR}/../src)
  target_compile_options(unisono_torch_${minor} PRIVATE ${UNISONO_TORCH_OPTIMIZATION} -Wall -Wextra -Wshadow)
  use_torch(unisono_torch_${minor} ${folder} c10 torch_cpu torch torch_python)
  target_link_libraries(unisono_torch_${minor} PRIVATE unisono_torch_sources unisono_for_python)
  target_link_options(unisono_torch_${minor} PRIVATE -Wl,--exclude-libs,ALL)
  # A component of its own, so that scripts/test-torch can add it to an installed package.
  install(TARGETS unisono_torch_${minor} DESTINATION unisono/torch/extensions/${minor} COMPONENT torch)
endforeach()
list(JOIN torch_versions ", " torch_versions)

# For the tests: a device whose tensors behave as CUDA's, without a GPU.
option(UNISONO_FAKE_DEVICE "Build the device that the tests of unisono.torch use" OFF)
if(UNISONO_FAKE_DEVICE)
  list(GET torch_folders 0 folder)
  add_library(fake_device MODULE tests/fake_device/device.cc tests/fake_device/driver.cc
                                 tests/fake_device/memory.cc)
  target_compile_options(fake_device PRIVATE -O1 -Wall -Wextra -Wshadow)
  use_torch(fake_device ${folder} c10 torch_cpu torch)
  target_link_libraries(fake_device PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endif()
