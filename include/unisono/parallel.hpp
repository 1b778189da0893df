// The whole C++ API of libunisono_parallel.
#pragma once

#include "unisono/parallel/any_span.hpp"
#include "unisono/parallel/checkpoint.hpp"
#include "unisono/parallel/context_parallel.hpp"
#include "unisono/parallel/expert_balance.hpp"
#include "unisono/parallel/experts.hpp"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/mesh.hpp"
#include "unisono/parallel/overlap.hpp"
#include "unisono/parallel/pipeline.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/reshard_names.hpp"
#include "unisono/parallel/sharded_state.hpp"
#include "unisono/parallel/tensor.hpp"
#include "unisono/parallel/tensor_parallel.hpp"
