/* libunisono_parallel for C: mixture of experts, and pipelines. */
#pragma once

#include "unisono/experts.h"
#include "unisono/pipeline.h"
