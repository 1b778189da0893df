// unisono: everything of the C++ API.
#pragma once

#include "unisono/allocator.hpp"
#include "unisono/communicator.hpp"
#include "unisono/device.hpp"
#include "unisono/error.hpp"
#include "unisono/explain.hpp"
#include "unisono/options.hpp"
#include "unisono/parallel/pipeline.hpp"
#include "unisono/statistics.hpp"
#include "unisono/team.hpp"
#include "unisono/types.hpp"
