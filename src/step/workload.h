// Converts a step into a workload for the simulator.
#pragma once

#include <string>

#include "planner/device.h"
#include "step/step.h"

namespace unisono::step {

// Returns `unisono.workload/1`. A computation takes the longer of its flops at the device's rate
// and its bytes at its memory's rate, both fitted; collectives are rings, and experts get equal
// numbers of rows. REQUIRES: verify() finds nothing.
std::string to_workload_json(const Step& step, const planner::DeviceModel& device,
                             planner::Precision precision);

}  // namespace unisono::step
