// A step as the simulator plays it.
#pragma once

#include <string>

#include "planner/device.h"
#include "step/step.h"

namespace unisono::step {

// `unisono.workload/1`: what each rank computes takes the longer of its products at the device's
// rate and its bytes at that of its memory, both as fitted; collectives are rings, exchanges of
// experts even. REQUIRES: verify() finds nothing.
std::string to_workload_json(const Step& step, const planner::DeviceModel& device,
                             planner::Precision precision);

}  // namespace unisono::step
