// A rank of a job that one rank brings to a stop: culprit KIND VICTIM COLLECTIVE BYTES AFTER. The
// other ranks print in one line the rank that their error names, and the duration of their last
// call.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"

namespace {

using unisono::Communicator;
using Clock = std::chrono::steady_clock;

struct Buffers {
  std::vector<float> in;
  std::vector<float> out;
};

void communicate(Communicator& comm, const std::string& collective, Buffers& buffers) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::span<const float> in(buffers.in);
  const std::span<float> out(buffers.out);
  if (collective == "barrier") {
    comm.barrier();
  } else if (collective == "broadcast") {
    comm.broadcast(out, 0);
    comm.barrier();  // otherwise a root would continue forever
  } else if (collective == "all_gather") {
    comm.all_gather(in.first(in.size() / ranks), out);
  } else if (collective == "all_to_all") {
    comm.all_to_all(in, out);
  } else if (collective == "all_reduce_async") {
    comm.all_reduce_async(in, out, unisono::sum).wait();
  } else {
    comm.all_reduce(in, out, unisono::sum);
  }
}

// The victim's action instead of the next call.
void misbehave(Communicator& comm, const std::string& kind) {
  if (kind == "stopped") {
    ::raise(SIGSTOP);
  } else if (kind == "killed") {
    ::raise(SIGKILL);
  } else if (kind == "ended") {
    ::_exit(0);
  } else if (kind == "busy") {
    for (const std::atomic<bool> ever = true; ever;) {
    }
  } else if (kind == "asleep") {
    for (;;) {
      ::pause();
    }
  } else if (kind == "receives") {  // from a rank that waits for it
    int never = 0;
    comm.recv(&never, sizeof(never), (comm.rank() + 1) % comm.size());
  } else {
    throw std::runtime_error("no kind " + kind);
  }
}

int work(char** words) {
  const std::string kind = words[0];
  const int victim = std::atoi(words[1]);
  const auto bytes = static_cast<std::size_t>(std::atoll(words[3]));
  const int after = std::atoi(words[4]);
  Communicator comm = Communicator::connect({});
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t count = std::max(bytes / sizeof(float) / ranks, std::size_t{1}) * ranks;
  Buffers buffers{.in = std::vector<float>(count, 1.0F), .out = std::vector<float>(count)};
  Clock::time_point called;
  try {
    for (int i = 0;; ++i) {
      if (i == after && comm.rank() == victim) {
        misbehave(comm, kind);
      }
      called = Clock::now();
      communicate(comm, words[2], buffers);
    }
  } catch (const unisono::Error& error) {
    const std::chrono::duration<double, std::milli> waited = Clock::now() - called;
    std::printf("told of %d after %.0f ms: %s: %s\n", error.context().peer, waited.count(),
                std::string(unisono::to_string(error.code())).c_str(), error.what());
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::puts("usage: culprit KIND VICTIM COLLECTIVE BYTES AFTER");
    return 2;
  }
  return work(argv + 1);
}
