// Every collective, point to point messages, a plan and a team, in a program that is linked to
// libunisono alone.
#include <atomic>
#include <cstdio>
#include <unisono/unisono.hpp>
#include <vector>

namespace {

using unisono::Call;
using unisono::Collective;

constexpr int kRanks = 3;
constexpr std::size_t kCount = 2;

std::atomic<int> failures = 0;

void expect(bool right, const char* what) {
  if (!right) {
    std::fprintf(stderr, "collectives_alone: wrong: %s\n", what);
    ++failures;
  }
}

float element(int rank, std::size_t index) {
  return static_cast<float>(10 * rank) + static_cast<float>(index);
}

// Returns rank 1's result in the plain form.
std::vector<float> expected(Collective collective) {
  std::vector<float> result;
  const auto add_part = [&](int from, std::size_t first) {
    for (std::size_t i = 0; i < kCount; ++i) {
      result.push_back(element(from, first + i));
    }
  };
  const auto add_sums = [&](std::size_t first) {
    for (std::size_t i = 0; i < kCount; ++i) {
      result.push_back(element(0, first + i) + element(1, first + i) + element(2, first + i));
    }
  };
  switch (collective) {
    case Collective::broadcast:
      add_part(1, 0);
      break;
    case Collective::scatter:
    case Collective::scatter_v:
      add_part(1, kCount);
      break;
    case Collective::reduce:
    case Collective::all_reduce:
      add_sums(0);
      break;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      add_sums(kCount);
      break;
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      for (int from = 0; from < kRanks; ++from) {
        add_part(from, kCount);
      }
      break;
    default:  // gather and all_gather
      for (int from = 0; from < kRanks; ++from) {
        add_part(from, 0);
      }
  }
  return result;
}

void run(unisono::Communicator& comm, Collective collective) {
  std::vector<float> in(kRanks * kCount);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = element(comm.rank(), i);
  }
  std::vector<float> out(in.size());
  const std::vector<std::size_t> counts(kRanks, kCount);
  Call call{.collective = collective,
            .in = in.data(),
            .out = out.data(),
            .count = kCount,
            .dtype = unisono::Dtype::f32,
            .reduction = unisono::sum,
            .root = 1};
  if (unisono::to_string(collective).ends_with("_v")) {
    call.count = 0;
    call.counts = counts;
    if (collective == Collective::all_to_all_v) {
      call.recv_counts = counts;
    }
  }
  comm.run(call);
  if (comm.rank() == 1 && collective != Collective::barrier) {
    const std::vector<float> right = expected(collective);
    out.resize(right.size());
    expect(out == right, std::string(unisono::to_string(collective)).c_str());
  }
}

}  // namespace

int main() {
  unisono::run_threads(kRanks, [](unisono::Communicator& comm) {
    for (int i = 0; i <= static_cast<int>(Collective::all_to_all_v); ++i) {
      run(comm, static_cast<Collective>(i));
    }
    float from_left = -1;
    const float mine = element(comm.rank(), 0);
    const int right = (comm.rank() + 1) % kRanks;
    const int left = (comm.rank() + kRanks - 1) % kRanks;
    comm.send_recv(&mine, sizeof(mine), right, &from_left, sizeof(from_left), left, 0, -1);
    expect(from_left == element(left, 0), "exchange");
    expect(!comm.explain({.collective = Collective::all_reduce, .count = 8}).candidates.empty(),
           "explain");
  });
  std::puts(failures == 0 ? "collectives_alone: right" : "collectives_alone: wrong");
  return failures == 0 ? 0 : 1;
}
