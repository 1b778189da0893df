// Programs with long messages. Each poll() advances every pass by one segment if the pass's sources
// have data, the pass is next in its lanes, and the passes that it depends on are ahead of it. So
// all lanes move at the same time, and only the data dependencies impose an order.
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

  // Starts the program. Allocates memory only if the program is larger than all earlier ones.
  void start();
  Progress poll() noexcept;
  // Advances only one pass, and the sends that are fused with it. Returns finished once the pass
  // has finished.
  Progress poll_pass(std::uint32_t pass) noexcept;
  // Returns first the ranks whose messages are missing, then the ranks that have not read ours.
  std::vector<Wait> waits() const;
  bool is_amid_message() const noexcept;

 private:
  struct State {
    std::size_t done = 0;
    transport::Mark mark = 0;
    bool shared = false;    // its readers read our memory
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
  // Records a piece of a pass, from `begin` until now.
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
  std::uint32_t took_[kernels::kMaxSources] = {};  // the sends that belong to the targets
};

}  // namespace unisono::engine
