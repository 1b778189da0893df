/* libunisono_parallel for C: mixture of experts, pipelines, and reshard. */
#pragma once

#include "unisono/experts.h"
#include "unisono/pipeline.h"
#include "unisono/reshard.h"
