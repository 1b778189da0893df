// Attention along one axis: queries stay, and keys and values come to them.
#pragma once

#include "parallel/context_job.h"

namespace unisono::parallel {

void ring_forward(const ContextJob& job, float* out, float* log_sum);
// Writes the gradients. `delta` as in AttentionBackward.
void ring_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                   const float* delta, const WideGradients& gradients);
void gathered_forward(const ContextJob& job, float* out, float* log_sum);
void gathered_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                       const float* delta, const WideGradients& gradients);

}  // namespace unisono::parallel
