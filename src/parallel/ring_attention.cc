// Ring attention: while one block of keys and values is used, the next one is received. In the
// backward pass a block's gradients follow it, one step behind, until they are home.
#include "parallel/ring_attention.h"

#include <algorithm>
#include <limits>

namespace unisono::parallel {
namespace {

constexpr int kBlockTag = 1;
constexpr int kGradientTag = 2;

// The keys, then the values, of one rank.
struct RingBlock {
  std::vector<std::byte> data;
  int owner = 0;
};

class Ring {
 public:
  explicit Ring(const ContextJob& job) : job_(job) {}
  int ranks() const { return job_.axis.size(); }
  int next() const { return (job_.axis.rank() + 1) % ranks(); }
  int before() const { return (job_.axis.rank() + ranks() - 1) % ranks(); }
  // Returns the rank whose block is here at a step.
  int owner(int step) const { return (job_.axis.rank() - step + 2 * ranks()) % ranks(); }

  RingBlock first() const {
    RingBlock block{.data = {}, .owner = job_.axis.rank()};
    for (const ConstAnySpan& part : {job_.key, job_.value}) {
      const auto* from = static_cast<const std::byte*>(part.data());
      block.data.insert(block.data.end(), from, from + part.size() * size_of(part.dtype()));
    }
    return block;
  }
  RingBlock room(int owner) const {
    return {.data = std::vector<std::byte>(2 * job_.key_count(owner) * size_of(job_.key.dtype())),
            .owner = owner};
  }
  template <typename T>
  Request send(const std::vector<T>& data, int tag) const {
    return job_.axis.send_async(data.data(), data.size() * sizeof(T), next(), tag);
  }
  template <typename T>
  Request receive(std::vector<T>& data, int tag) const {
    return job_.axis.recv_async(data.data(), data.size() * sizeof(T), before(), tag);
  }
  AttentionBlock block(const RingBlock& keys) const {
    const std::size_t count = job_.key_count(keys.owner);
    const Dtype dtype = job_.key.dtype();
    return {.shape = job_.shape,
            .query_positions = job_.mine(),
            .key_positions = job_.positions[static_cast<std::size_t>(keys.owner)],
            .query = job_.query,
            .key = {keys.data.data(), count, dtype},
            .value = {keys.data.data() + count * size_of(dtype), count, dtype}};
  }
  // Returns true if a query here sees a key of that rank.
  bool is_seen(int owner) const {
    const auto& queries = job_.mine();
    const auto& keys = job_.positions[static_cast<std::size_t>(owner)];
    return !queries.empty() && !keys.empty() &&
           (!job_.shape.causal || *std::min_element(keys.begin(), keys.end()) <=
                                      *std::max_element(queries.begin(), queries.end()));
  }

 private:
  const ContextJob& job_;
};

}  // namespace

void ring_forward(const ContextJob& job, float* out, float* log_sum) {
  const Ring ring(job);
  std::fill_n(out, job.query_count(), 0.0F);
  std::fill_n(log_sum, job.rows(), -std::numeric_limits<float>::infinity());
  std::vector<float> part(job.query_count());
  std::vector<float> part_log_sum(job.rows());
  RingBlock here = ring.first();
  for (int step = 0; step < ring.ranks(); ++step) {
    const bool last = step + 1 == ring.ranks();
    RingBlock coming = last ? RingBlock{} : ring.room(ring.owner(step + 1));
    Request received = last ? Request() : ring.receive(coming.data, kBlockTag);
    Request sent = last ? Request() : ring.send(here.data, kBlockTag);
    if (ring.is_seen(here.owner)) {
      job.kernel.forward(ring.block(here), part.data(), part_log_sum.data());
      merge_attention(job.rows(), job.shape.dim, part.data(), part_log_sum.data(), out, log_sum);
    }
    if (!last) {
      received.wait();
      sent.wait();
      here = std::move(coming);
    }
  }
}

void ring_backward(const ContextJob& job, ConstAnySpan gradient, const float* log_sum,
                   const float* delta, const WideGradients& gradients) {
  const Ring ring(job);
  std::fill(gradients.query.begin(), gradients.query.end(), 0.0F);
  RingBlock here = ring.first();
  std::vector<float> sums;     // gradients of the current block, summed over the ranks before
  std::vector<float> passing;  // those of the previous block, on their way to the next rank
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
  // The last rank that a block visits is the one before its own.
  std::vector<float> home(2 * job.key_count(job.axis.rank()));
  ring.receive(home, kGradientTag).wait();
  passed.wait();
  const auto middle = home.begin() + static_cast<std::ptrdiff_t>(home.size() / 2);
  std::copy(home.begin(), middle, gradients.key.begin());
  std::copy(middle, home.end(), gradients.value.begin());
}

}  // namespace unisono::parallel
