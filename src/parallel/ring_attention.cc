// Ring attention: receives the next block of keys and values while it uses the current one. In the
// backward pass, the gradients of a block follow this block, one step behind, until they reach the
// block's owner.
#include "parallel/ring_attention.h"

#include <algorithm>
#include <limits>

#include "parallel/key_ring.h"

namespace unisono::parallel {

void ring_forward(const ContextJob& job, float* out, float* log_sum) {
  const KeyRing ring(job);
  std::fill_n(out, job.query_count(), 0.0F);
  std::fill_n(log_sum, job.rows(), -std::numeric_limits<float>::infinity());
  std::vector<float> part(job.query_count());
  std::vector<float> part_log_sum(job.rows());
  ring.visit_all([&](const RingBlock& here) {
    if (ring.is_seen(here.owner)) {
      job.kernel.forward(ring.block(here), part.data(), part_log_sum.data());
      merge_attention(job.rows(), job.shape.dim, part.data(), part_log_sum.data(), out, log_sum);
    }
  });
}

void ring_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                   const float* delta, const WideGradients& gradients) {
  const KeyRing ring(job);
  std::fill(gradients.query.begin(), gradients.query.end(), 0.0F);
  RingBlock here = ring.first();
  std::vector<float> sums;     // gradients of the current block, summed over the earlier ranks
  std::vector<float> passing;  // gradients of the previous block, in transit to the next rank
  Request passed;
  for (int step = 0; step < ring.ranks(); ++step) {
    const bool last = step + 1 == ring.ranks();
    RingBlock coming = last ? RingBlock{} : ring.room(ring.owner(step + 1));
    Request received = last ? Request() : ring.receive(coming.data, kBlockTag);
    Request sent = last ? Request() : ring.send(here.data, kBlockTag);
    sums.assign(2 * job.key_count(here.owner), 0.0F);
    Request summed = step == 0 ? Request() : ring.receive(sums, kGradientTag);
    std::vector<float> own(sums.size());
    if (ring.is_seen(here.owner)) {
      job.kernel.backward(ring.block(here),
                          {.gradient = gradient,
                           .log_sum = log_sum,
                           .delta = delta,
                           .query_gradient = gradients.query.data(),
                           .key_gradient = own.data(),
                           .value_gradient = own.data() + job.key_count(here.owner)});
    }
    if (step != 0) {
      summed.wait();
      passed.wait();
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] += sums[i];
    }
    passing = std::move(own);
    passed = ring.send(passing, kGradientTag);
    if (!last) {
      received.wait();
      sent.wait();
      here = std::move(coming);
    }
  }
  // The last rank that a block visits is the one before its owner.
  std::vector<float> home(2 * job.key_count(job.rank()));
  ring.receive(home, kGradientTag).wait();
  passed.wait();
  const auto middle = home.begin() + static_cast<std::ptrdiff_t>(home.size() / 2);
  std::copy(home.begin(), middle, gradients.key.begin());
  std::copy(middle, home.end(), gradients.value.begin());
}

}  // namespace unisono::parallel
