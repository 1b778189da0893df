# unisono/_core: the library for Python, without PyTorch.
execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
                OUTPUT_VARIABLE pybind11_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(pybind11 2.10 REQUIRED CONFIG HINTS ${pybind11_folder})

set(root ${CMAKE_CURRENT_SOURCE_DIR}/..)
set(tools ${root}/tools/unisono)
pybind11_add_module(unisono_core MODULE NO_EXTRAS
  csrc/common/signals.cc csrc/core/collectives.cc csrc/core/communicator.cc
  csrc/core/connect.cc csrc/core/devices.cc csrc/core/elements.cc
  csrc/core/expert_places.cc csrc/core/experts.cc csrc/core/job.cc csrc/core/memory.cc
  csrc/core/messages.cc csrc/core/model_plans.cc csrc/core/models.cc csrc/core/module.cc
  csrc/core/parallel.cc csrc/core/parallel_context.cc csrc/core/parallel_layers.cc
  csrc/core/parallel_mesh.cc csrc/core/parallel_tensors.cc csrc/core/parallel_training.cc
  csrc/core/parallel_reshard.cc
  csrc/core/pipelines.cc
  csrc/core/schedules.cc
  # The sources of `unisono show`'s drawing.
  ${tools}/cli/console.cc ${tools}/cli/failure.cc ${tools}/cli/language.cc ${tools}/cli/chinese.cc
  ${tools}/cli/target.cc ${tools}/cli/wrap.cc
  ${tools}/show/provenance.cc
  ${tools}/show/counts.cc ${tools}/show/strips.cc ${tools}/show/summary.cc)
set_target_properties(unisono_core PROPERTIES OUTPUT_NAME _core CXX_VISIBILITY_PRESET hidden)
target_include_directories(unisono_core PRIVATE csrc csrc/core ${root}/src ${tools})
target_compile_options(unisono_core PRIVATE -O2 -Wall -Wextra -Wshadow)
# The tools print with fmt, the library does without: compiled in, so that the wheel needs it nowhere.
find_package(fmt REQUIRED)
target_link_libraries(unisono_core PRIVATE unisono_for_python fmt::fmt-header-only)
target_link_options(unisono_core PRIVATE -Wl,--exclude-libs,ALL)
# The kernels for GPUs lie beside it, and are opened where a program has memory of GPUs.
set_target_properties(unisono_core PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS unisono_core DESTINATION unisono)
if(UNISONO_CUDA_LIBRARY)
  file(REAL_PATH ${UNISONO_CUDA_LIBRARY} kernels)
elseif(TARGET unisono_cuda)
  add_dependencies(unisono_core unisono_cuda)
  set(kernels $<TARGET_FILE:unisono_cuda>)
endif()
if(kernels)
  install(FILES ${kernels} DESTINATION unisono RENAME libunisono_cuda.so.0)
endif()
