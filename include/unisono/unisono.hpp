// Includes the C++ API except parts of parallel/: include parallel/experts.hpp, parallel/mesh.hpp
// and the other headers of parallel/ where you use them.
#pragma once

#if __cplusplus < 202002L
#error "unisono needs C++20: give the compiler -std=c++20"
#endif

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
