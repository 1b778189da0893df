#include "limits/all_reduce.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "limits/sums.h"
#include "peers/control.h"

namespace unisono::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineFloats = 14;  // fit into one cache line with the flag
constexpr std::size_t kStageBytes = 65536;
constexpr std::size_t kStreamFrom = 262144;

struct FreeDeleter {
  void operator()(float* data) const { ::operator delete[](data, std::align_val_t{kPageBytes}); }
};
using Vector = std::unique_ptr<float[], FreeDeleter>;

Vector make_vector(std::size_t count) {
  const std::size_t bytes = count * sizeof(float) + kPageBytes;
  auto* data = static_cast<float*>(::operator new[](bytes, std::align_val_t{kPageBytes}));
  std::memset(data, 0, bytes);
  return Vector{data};
}

// Data that the two threads share besides the vectors. Only one thread writes each word.
struct Shared {
  struct alignas(128) Line {
    std::atomic<std::uint64_t> flag{0};
    float data[kLineFloats] = {};
  };
  Line lines[2][2];  // [thread][call parity]: a writer is never more than one call ahead
  struct alignas(128) Flag {
    std::atomic<std::uint64_t> value{0};
  };
  Flag flags[2];
  Vector stage[2];  // [thread]; two halves, by call parity
};

struct Buffers {
  std::vector<Vector> memory;
  std::vector<const float*> ins;
  std::vector<float*> outs;
  std::size_t count = 0;
};

void wait_for(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) < value) {
  }
}

// Runs one thread's part of each variant.
class Side {
 public:
  Side(Shared& shared, Buffers& buffers, int me) : shared_(shared), buffers_(buffers), me_(me) {}

  void through_lines() {
    ++call_;
    Shared::Line& mine = shared_.lines[me_][call_ & 1];
    Shared::Line& theirs = shared_.lines[1 - me_][call_ & 1];
    std::memcpy(mine.data, buffers_.ins[index()], buffers_.count * sizeof(float));
    mine.flag.store(call_, std::memory_order_release);
    wait_for(theirs.flag, call_);
    float* out = buffers_.outs[index()];
    for (std::size_t i = 0; i < buffers_.count; ++i) {
      out[i] = theirs.data[i] + buffers_.ins[index()][i];
    }
  }

  void staged() {
    ++call_;
    const std::size_t half = (call_ & 1) * (kStageBytes / sizeof(float));
    float* mine = shared_.stage[me_].get() + half;
    std::memcpy(mine, buffers_.ins[index()], buffers_.count * sizeof(float));
    shared_.flags[me_].value.store(call_, std::memory_order_release);
    wait_for(shared_.flags[1 - me_].value, call_);
    const float* const ins[2] = {buffers_.ins[index()], shared_.stage[1 - me_].get() + half};
    float* const outs[1] = {buffers_.outs[index()]};
    sum_into_all(ins, outs, 0, buffers_.count, false);
  }

  void halves(bool stream) {
    meet();
    const std::size_t middle = buffers_.count / 2 / 16 * 16;
    sum_into_all(buffers_.ins, buffers_.outs, me_ == 0 ? 0 : middle,
                 me_ == 0 ? middle : buffers_.count, stream);
    meet();
  }

  // Rewrites the inputs and reads the outputs of the ranks that this thread represents.
  void refresh() {
    double sum = 0.0;
    for (std::size_t rank = index(); rank < buffers_.ins.size(); rank += 2) {
      const float* out = buffers_.outs[rank];
      float* in = buffers_.memory[2 * rank].get();
      for (std::size_t i = 0; i < buffers_.count; ++i) {
        sum += static_cast<double>(out[i]);
      }
      std::fill_n(in, buffers_.count, sum == -1.0 ? 2.0F : 1.0F);
    }
  }

 private:
  std::size_t index() const { return static_cast<std::size_t>(me_); }
  void meet() {
    ++call_;
    shared_.flags[me_].value.store(call_, std::memory_order_release);
    wait_for(shared_.flags[1 - me_].value, call_);
  }

  Shared& shared_;
  Buffers& buffers_;
  int me_;
  std::uint64_t call_ = 0;
};

Buffers make_buffers(std::size_t count, int ranks) {
  Buffers buffers;
  buffers.count = count;
  for (int rank = 0; rank < ranks; ++rank) {
    buffers.memory.push_back(make_vector(count));
    buffers.ins.push_back(buffers.memory.back().get());
    buffers.memory.push_back(make_vector(count));
    buffers.outs.push_back(buffers.memory.back().get());
  }
  return buffers;
}

void check(const Buffers& buffers) {
  const auto want = static_cast<float>(buffers.ins.size());
  for (const float* out : buffers.outs) {
    for (std::size_t i = 0; i < buffers.count; ++i) {
      if (out[i] != want) {
        throw std::runtime_error("the limit's all_reduce is wrong");
      }
    }
  }
}

// Runs one variant on two threads, checks its result and times it.
double run_variant(const std::string& directory, Buffers& buffers, const Timing& timing,
                   const std::function<void(Side&)>& variant) {
  Shared shared;
  for (Vector& stage : shared.stage) {
    stage = make_vector(2 * kStageBytes / sizeof(float));
  }
  for (std::size_t rank = 0; rank < buffers.ins.size(); ++rank) {
    std::fill_n(buffers.memory[2 * rank].get(), buffers.count, 1.0F);
    std::fill_n(buffers.outs[rank], buffers.count, 0.0F);
  }
  double median_us = 0.0;
  const auto body = [&](int me) {
    Control control(directory, me, 2);
    pin_rank(me, 2);
    Side side(shared, buffers, me);
    const std::function<void()> call = [&] { variant(side); };
    Samples samples = time_calls(control, me, 2, timing, call, [&side] { side.refresh(); });
    if (me == 0) {
      median_us = quantile(samples.call_us, 0.5);
    }
  };
  std::thread first(body, 0);
  std::thread second(body, 1);
  first.join();
  second.join();
  check(buffers);
  return median_us;
}

}  // namespace

Limit all_reduce_limit(const std::string& directory, std::size_t bytes, int ranks,
                       const Timing& timing) {
  Buffers buffers = make_buffers(bytes / sizeof(float), ranks);
  Limit best;
  const auto attempt = [&](const char* name, const std::function<void(Side&)>& variant) {
    const double median_us = run_variant(directory, buffers, timing, variant);
    if (best.variant.empty() || median_us < best.median_us) {
      best = {median_us, name};
    }
  };
  if (ranks == 2 && buffers.count <= kLineFloats) {
    attempt("lines", [](Side& side) { side.through_lines(); });
  }
  if (ranks == 2 && bytes <= kStageBytes) {
    attempt("staged", [](Side& side) { side.staged(); });
  }
  if (buffers.count > kLineFloats || ranks != 2) {
    attempt("halves", [](Side& side) { side.halves(false); });
  }
  if (bytes >= kStreamFrom) {
    attempt("halves, streaming stores", [](Side& side) { side.halves(true); });
  }
  return best;
}

}  // namespace unisono::bench
