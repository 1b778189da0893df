// libunisono_lab: predicts the time of collectives, workloads and models on described machines. It
// needs no ranks, moves no data, and links to no other library of unisono.
//
// A topology is a preset (`unisono topo --presets`) with its parameters, such as
// "dgx_h100:nodes=4", or the text of unisono.topology/1 (docs/formats/topology.md).
//
// Threads: any.
// Errors: usage, with the position if a text has a mistake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unisono/error.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono::lab {

// An algorithm and its simulated time.
struct PredictedAlgorithm {
  std::string algorithm;  // with its parameters
  double time_us = 0;
};
// Local. Simulates each algorithm of the collective on the first `ranks` ranks of a topology, as
// `unisono plan --on` does. Returns the algorithms, the fastest first.
// Units: `bytes`: the bytes of a rank's input or output, whichever is larger.
UNISONO_EXPORT std::vector<PredictedAlgorithm> predict(Collective collective, int ranks,
                                                       double bytes, std::string_view topology);

// Local. Simulates a workload. `workload` is a text in the format unisono.workload/1
// (docs/formats/workload.md) that refers to no file. Returns the same text as `unisono sim --json`
// prints, in the format unisono.simulation/1.
UNISONO_EXPORT std::string simulate(std::string_view workload, std::string_view topology);

// A layout of a model and its predicted speed.
struct PlannedLayout {
  std::string layout;  // "dp=4 tp=8 pp=2 ..."
  double step_s = 0;
  double tokens_per_s_device = 0;
};
// Local. Returns the ten fastest layouts to train a model on all devices of a topology, as `unisono
// plan-model` does. The list is empty if no layout fits into memory. `model` is a name that
// `unisono plan-model` knows, or the text of a config.json. `batch`: sequences per step.
// `sequence`: tokens per sequence.
UNISONO_EXPORT std::vector<PlannedLayout> plan_training(std::string_view model,
                                                        std::string_view topology, double batch,
                                                        double sequence);

// Local. Verifies a step, a text in the format unisono.step/1 (docs/formats/step.md). Returns one
// text for each mistake. The list is empty if the step computes the same result as one process.
UNISONO_EXPORT std::vector<std::string> check_step(std::string_view step);

}  // namespace unisono::lab
