// Converts the command line of `unisono bench` to the cases to run and the output format.
#pragma once

#include "bench/formats.h"
#include "bench/sweep.h"
#include "cli/arguments.h"
#include "cli/console.h"

namespace unisono::cli {

// Both throw UsageError for a case that cannot run.
SweepOptions read_sweep(const Arguments& arguments, int ranks);
Format read_format(const Arguments& arguments, const Console& console);

}  // namespace unisono::cli
