#include "tune/other_worlds.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <span>

namespace unisono::cli {
namespace {

int count_cpus(Communicator& comm) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  auto words = std::bit_cast<std::array<std::uint64_t, sizeof(mine) / 8>>(mine);
  comm.all_reduce(words, ReduceOp::bor);
  int cpus = 0;
  for (const std::uint64_t word : words) {
    cpus += std::popcount(word);
  }
  return cpus;
}

std::string job_name(Communicator& comm) {
  std::uint64_t number =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  comm.broadcast(std::span(&number, 1), 0);
  return fmt::format("tune-{:x}", number);
}

}  // namespace

OtherWorlds::OtherWorlds(Communicator& comm)
    : rank_(comm.rank()), size_(comm.size()), cpus_(count_cpus(comm)), job_(job_name(comm)) {}

Communicator OtherWorlds::connect(ConnectOptions options) {
  options.rank = rank_;
  options.size = size_;
  options.job = fmt::format("{}-{}", job_, made_++);
  options.profile = "none";  // it would limit what is to be measured
  return Communicator::connect(options);
}

}  // namespace unisono::cli
