// Passes keys and values around a ring of ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "parallel/context_job.h"

namespace unisono::parallel {

inline constexpr int kBlockTag = 1;
inline constexpr int kGradientTag = 2;

// The keys of one rank, followed by its values.
struct RingBlock {
  std::vector<std::byte> data;
  int owner = 0;
};

class KeyRing {
 public:
  explicit KeyRing(const ContextJob& job) : job_(job) {}
  int ranks() const { return job_.ranks(); }
  int next() const { return (job_.rank() + 1) % ranks(); }
  int before() const { return (job_.rank() + ranks() - 1) % ranks(); }
  // Returns the rank whose block this rank has at a step.
  int owner(int step) const { return (job_.rank() - step + 2 * ranks()) % ranks(); }

  RingBlock first() const {
    RingBlock block{.data = {}, .owner = job_.rank()};
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
    return job_.axis->send_async(data.data(), data.size() * sizeof(T), next(), tag);
  }
  template <typename T>
  Request receive(std::vector<T>& data, int tag) const {
    return job_.axis->recv_async(data.data(), data.size() * sizeof(T), before(), tag);
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
  // Visits the keys of all ranks, starting with this rank's, while the next ones are in transit.
  template <typename Visit>
  void visit_all(const Visit& visit) const {
    RingBlock here = first();
    for (int step = 0; step < ranks(); ++step) {
      const bool last = step + 1 == ranks();
      RingBlock coming = last ? RingBlock{} : room(owner(step + 1));
      Request received = last ? Request() : receive(coming.data, kBlockTag);
      Request sent = last ? Request() : send(here.data, kBlockTag);
      visit(here);
      if (!last) {
        received.wait();
        sent.wait();
        here = std::move(coming);
      }
    }
  }
  // Returns true if a query of this rank sees a key of that rank.
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

}  // namespace unisono::parallel
