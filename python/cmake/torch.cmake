# unisono/torch/_C, against the PyTorch of the interpreter; nothing where there is none.
option(UNISONO_TORCH "Build unisono.torch where PyTorch is installed" ON)
if(NOT UNISONO_TORCH)
  message(STATUS "Without unisono.torch, as asked for")
  return()
endif()

# Asks PyTorch itself instead of find_package(Torch), which wants all that PyTorch was built with.
# By PYTHONPATH pip hides from a build what the environment has installed: PyTorch is looked for
# there all the same.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH --unset=PYTHONNOUSERSITE
          ${Python_EXECUTABLE} -c [[
import torch, torch.utils.cpp_extension as extension
print(torch.__version__.split("+")[0], int(torch._C._GLIBCXX_USE_CXX11_ABI), torch.__path__[0],
      *extension.include_paths(), sep=";")]]
  OUTPUT_VARIABLE torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE torch_missing ERROR_QUIET)
if(torch_missing)
  message(WARNING "PyTorch is not installed for ${Python_EXECUTABLE}: no unisono.torch. "
                  "Install again once it is")
  return()
endif()
list(POP_FRONT torch_facts torch_version torch_abi torch_folder)
message(STATUS "unisono.torch for PyTorch ${torch_version} in ${torch_folder}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor ${torch_version})
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/torch-versions.txt tested_versions REGEX "^[0-9]")
if(NOT torch_minor IN_LIST tested_versions)
  list(JOIN tested_versions ", " tested_shown)
  message(WARNING "unisono.torch is tested with PyTorch ${tested_shown}; this is ${torch_version}, "
                  "which is tried")
endif()

Python_add_library(unisono_torch MODULE WITH_SOABI
                   csrc/torch/backend.cc csrc/torch/backend_collectives.cc
                   csrc/torch/backend_devices.cc csrc/torch/backend_groups.cc
                   csrc/torch/backend_memory.cc csrc/torch/convert.cc csrc/torch/flight_recorder.cc
                   csrc/torch/meeting.cc csrc/torch/meeting_store.cc csrc/torch/module.cc
                   csrc/torch/on_device.cc csrc/torch/peer_memory.cc csrc/torch/pieces.cc csrc/torch/pieces_collectives.cc
                   csrc/torch/reconfigure.cc csrc/torch/store_host.cc csrc/torch/window.cc
                   csrc/torch/streams.cc csrc/torch/symmetric_memory.cc csrc/torch/symmetric_ops.cc
                   csrc/torch/symmetric_signals.cc csrc/torch/work.cc csrc/common/signals.cc)
option(UNISONO_UNITY "Compile several files as one: PyTorch's headers take longer than the rest" ON)
set_target_properties(unisono_torch PROPERTIES OUTPUT_NAME _C CXX_VISIBILITY_PRESET hidden
                      UNITY_BUILD ${UNISONO_UNITY} UNITY_BUILD_BATCH_SIZE 4)
# PyTorch's flight recorder is a header that uses fmt, which PyTorch has but does not export.
set_source_files_properties(csrc/torch/flight_recorder.cc PROPERTIES
  COMPILE_DEFINITIONS FMT_HEADER_ONLY=1 SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_definitions(unisono_torch PRIVATE TORCH_EXTENSION_NAME=_C USE_C10D_GLOO
                                                 _GLIBCXX_USE_CXX11_ABI=${torch_abi})
# PyTorch's headers are not ours to warn about. Its pybind11 is among them: another one would make
# our backend a type that its Python side does not know.
target_include_directories(unisono_torch PRIVATE csrc ${CMAKE_CURRENT_SOURCE_DIR}/../src)
target_include_directories(unisono_torch SYSTEM PRIVATE ${torch_facts})
set(UNISONO_TORCH_OPTIMIZATION -O2 CACHE STRING "Of unisono/torch/_C; -O1 compiles in two thirds of the time")
target_compile_options(unisono_torch PRIVATE ${UNISONO_TORCH_OPTIMIZATION} -Wall -Wextra -Wshadow)
foreach(name IN ITEMS c10 torch_cpu torch torch_python)
  find_library(torch_${name} ${name} PATHS ${torch_folder}/lib NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(unisono_torch PRIVATE ${torch_${name}})
endforeach()
target_link_libraries(unisono_torch PRIVATE unisono_for_python)
target_link_options(unisono_torch PRIVATE -Wl,--exclude-libs,ALL)
# PyTorch is loaded before us; its folder is not a part of the file.
set_target_properties(unisono_torch PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")

list(JOIN tested_versions "\", \"" tested_words)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/_built_for.py
     "\"\"\"What the extension was built for; written by the build.\"\"\"\n"
     "TORCH = \"${torch_minor}\"\nTORCH_VERSION = \"${torch_version}\"\n"
     "TESTED = (\"${tested_words}\",)\n")
# A component of its own, so that scripts/test-torch can put it in the place of another version's.
install(TARGETS unisono_torch DESTINATION unisono/torch COMPONENT torch)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_built_for.py DESTINATION unisono/torch COMPONENT torch)

# For the tests: a device whose tensors behave as CUDA's, without a GPU.
option(UNISONO_FAKE_DEVICE "Build the device that the tests of unisono.torch use" OFF)
if(UNISONO_FAKE_DEVICE)
  add_library(fake_device MODULE tests/fake_device/device.cc tests/fake_device/driver.cc
                                 tests/fake_device/memory.cc)
  target_compile_definitions(fake_device PRIVATE _GLIBCXX_USE_CXX11_ABI=${torch_abi})
  target_include_directories(fake_device SYSTEM PRIVATE ${torch_facts})
  target_compile_options(fake_device PRIVATE -O1 -Wall -Wextra -Wshadow)
  target_link_libraries(fake_device PRIVATE ${torch_c10} ${torch_torch_cpu} ${torch_torch}
                                            Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(fake_device PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")
endif()
