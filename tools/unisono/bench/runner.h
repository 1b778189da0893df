// Runs one case at a time: fills, checks, measures. Every rank calls it in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/formats.h"
#include "bench/limit.h"
#include "bench/reference.h"
#include "bench/timing.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

struct RunnerOptions {
  TimingOptions timing;
  bool registered = false;
  bool persistent = false;
  bool random = false;
  std::uint64_t most_bytes = 0;  // of any case
};

class Runner {
 public:
  Runner(Communicator& comm, const RunnerOptions& options);
  // Collective; every rank gets the same row.
  Row run(const Case& row);
  double hop_us() const { return limit_.hop_us(); }

 private:
  struct Buffers {
    void* in = nullptr;
    void* out = nullptr;
  };
  Buffers place(const Case& row, const CaseCounts& layout);
  Call call_of(const Case& row, const CaseCounts& layout, Buffers buffers) const;
  std::function<void()> operation(const Case& row, const CaseCounts& layout, Buffers buffers,
                                  const Call& call);
  struct Checked {
    std::uint64_t checks = 0;
    std::uint64_t failed = 0;
    std::uint64_t wrong = 0;  // elements
  };
  // Compares this rank's result with the reference.
  void check(const Case& row, const CaseCounts& layout, const DataRule& rule, const void* out,
             Checked& checked) const;
  Checked on_all_ranks(const Checked& mine);

  Communicator& comm_;
  RunnerOptions options_;
  Limit limit_;
  std::uint64_t seed_ = 0;
  std::vector<std::byte> memory_[2];
  Region regions_[2];
  std::byte* first_ = nullptr;
  std::byte* second_ = nullptr;
  std::shared_ptr<Plan> plan_;  // shared by the copies of one std::function
};

// Reads all bytes of a buffer, so that they are in this core's cache, as after a real use of the
// data.
std::uint64_t read_all(const void* data, std::size_t bytes);

}  // namespace unisono::cli
