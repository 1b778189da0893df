# Developer builds compile sixteen files at a time (CMAKE_UNITY_BUILD in CMakePresets.json): headers are
# most of what a small file costs, and a cold build takes less than half the time. Files are compiled
# alone, in the project of a user who sets it as well, if they share local names with a neighbour or if
# a class has members of local types (-Wsubobject-linkage). `cmake --preset clang` compiles every file
# alone.

# Highway includes these files once for each instruction set.
foreach(target IN ITEMS unisono_kernels kernels_test c_program)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
endforeach()

function(unisono_alone directory)
  foreach(file IN LISTS ARGN)
    set(path ${PROJECT_SOURCE_DIR}/${directory}/${file})
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "cmake/unisono_unity.cmake names ${directory}/${file}, which is not there")
    endif()
    set_source_files_properties(${path} DIRECTORY ${PROJECT_SOURCE_DIR}/${directory} PROPERTIES
                                SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

unisono_alone(src/bootstrap local_world_join_test.cc local_world_rendezvous_test.cc net_mesh_test.cc)
unisono_alone(src/experts agreement.cc)
unisono_alone(src/network_model expert_fit_test.cc simulator/workload_json_test.cc simulator/workload_test.cc)
unisono_alone(src/parallel gradient_buckets.cc tensor_parallel_test.cc)
unisono_alone(src/team team.cc)
unisono_alone(src/transport tcp/cut_writes_test.cc)
if(UNISONO_DEVELOPER_MODE)
  unisono_alone(examples/llm folder.cc gguf.cc model.cc pieces.cc safetensors.cc tokenizer.cc vocabulary.cc)
endif()
if(UNISONO_DEVELOPER_MODE AND UNISONO_TESTS)
  unisono_alone(tests/error disagreement_mistakes.cc)
  unisono_alone(tests/multiprocess shrink_steps_test.cc)
endif()
