// The whole C++ API of libunisono. parallel.hpp, device.hpp and lab.hpp are the headers of the
// other libraries.
#pragma once

#if __cplusplus < 202002L
#error "unisono needs C++20: give the compiler -std=c++20"
#endif

#include "unisono/allocator.hpp"
#include "unisono/communicator.hpp"
#include "unisono/error.hpp"
#include "unisono/exact_sum.hpp"
#include "unisono/explain.hpp"
#include "unisono/options.hpp"
#include "unisono/statistics.hpp"
#include "unisono/team.hpp"
#include "unisono/tree_sum.hpp"
#include "unisono/types.hpp"
#include "unisono/version.h"
