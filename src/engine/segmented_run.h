// Programs with long messages. Every pass that may go on goes on by one segment per poll(): when
// its sources have come, its turn in its lanes is there, and the passes that it depends on are
// ahead of it. So all lanes move at once, and the only order is that of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/execution.h"
#include "transport/send.h"

namespace unisono::engine {

class SegmentedRun {
 public:
  SegmentedRun(Execution& run, const transport::SendLimits& limits);

  // Allocates only when a larger program comes.
  void start();
  Progress poll() noexcept;
  // One pass goes on, and nothing else but the sends that ride along with it. Finished: the pass
  // is.
  Progress poll_pass(std::uint32_t pass) noexcept;
  // Those whose messages do not come, then those who do not read ours.
  std::vector<Wait> waits() const;

 private:
  struct State {
    std::size_t done = 0;
    transport::Mark mark = 0;
    bool shared = false;    // its readers look at our memory
    bool finished = false;  // and they are done
  };
  struct Arriving {
    transport::Incoming message;
    std::size_t fetched = 0;  // of an offer
    std::uint32_t sequence = 0;
    bool open = false;
  };

  std::size_t allowed(const BoundPass& pass) const noexcept;
  Progress advance_send(const BoundPass& pass, State& state) noexcept;
  Progress advance_compute(const BoundPass& pass, State& state) noexcept;
  bool open_sources(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept;
  bool fetch(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept;
  void close_sources(const BoundPass& pass, const State& state, std::size_t bytes) noexcept;
  kernels::Store store_to_readers(const BoundPass& pass, std::size_t bytes) const noexcept;
  int open_forwards(const BoundPass& pass, const State& state, std::size_t bytes) noexcept;
  void commit_forwards(int taken, std::size_t bytes) noexcept;
  // A piece of a pass has been done, from `begin` until now.
  void record_piece(const BoundPass& pass, const State& state, std::uint64_t begin,
                    std::size_t bytes, bool riding = false) noexcept;
  void record_forwards(int taken, std::uint64_t begin, std::size_t bytes) noexcept;
  bool shows(const BoundOperand& target, std::size_t bytes) const noexcept;
  bool is_missing(const BoundOperand& source) const noexcept;
  bool settle(const BoundPass& pass, State& state) noexcept;

  Execution& run_;
  transport::SendLimits send_limits_;
  bool output_shared_ = false;
  std::vector<State> states_;
  std::vector<BusyTicks> busy_;
  std::vector<std::uint32_t> active_;
  std::vector<Arriving> in_;
  std::vector<std::uint32_t> out_sequence_;
  std::uint32_t took_[kernels::kMaxSources] = {};  // the sends that go with the targets
};

}  // namespace unisono::engine
