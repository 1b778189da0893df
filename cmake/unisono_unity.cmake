# Developer builds compile sixteen files at a time (CMAKE_UNITY_BUILD in CMakePresets.json): headers are
# most of what a small file costs, and a cold build takes less than half the time. Files whose local
# names are also those of a neighbour are compiled alone, in the project of a user who sets it as well;
# `cmake --preset clang` compiles every file so.

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

unisono_alone(src/algorithms compose_test.cc)
unisono_alone(src/bootstrap file_entry.cc local_world_join_test.cc local_world_rendezvous_test.cc local_world_test.cc mesh.cc net_mesh_test.cc star.cc)
unisono_alone(src/diagnose timeout.cc)
unisono_alone(src/engine messages.cc)
unisono_alone(src/planner measured.cc)
unisono_alone(src/experts agreement.cc places.cc)
unisono_alone(src/membership net_agreement.cc)
unisono_alone(src/network_model expert_fit.cc expert_fit_test.cc expert_table.cc least_squares.cc repeats.cc simulator/fixed_rates.cc simulator/simulate.cc simulator/workload.cc simulator/workload_json_test.cc simulator/workload_test.cc table.cc)
unisono_alone(src/parallel context_parallel.cc gradient_buckets.cc placement.cc redistribute.cc tensor_parallel_test.cc vocabulary.cc)
unisono_alone(src/pipeline orders.cc)
unisono_alone(src/schedule final_state_test.cc json.cc verify_test.cc)
unisono_alone(src/step rules.cc step_test.cc training.cc training_test.cc)
unisono_alone(src/team team.cc)
unisono_alone(src/trace timeline.cc)
unisono_alone(src/transport tcp/cut_writes_test.cc tcp/wire_test.cc)
if(UNISONO_DEVELOPER_MODE)
  unisono_alone(examples/llm folder.cc gguf.cc model.cc pieces.cc safetensors.cc tokenizer.cc vocabulary.cc)
  unisono_alone(tools/unisono bench/plot.cc bench/runner.cc bench/session.cc imports/read.cc imports/torch_names.cc plan/expert_fit.cc plan/on.cc plan/prediction.cc record/chrome.cc record/why.cc show/provenance.cc show/summary.cc run/guardian.cc run/output.cc top.cc tune.cc)
endif()
if(UNISONO_DEVELOPER_MODE AND UNISONO_TESTS)
  unisono_alone(tests/error disagreement_mistakes.cc)
  unisono_alone(tests/multiprocess shrink_steps_test.cc)
endif()
