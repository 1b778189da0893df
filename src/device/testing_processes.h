// Ranks that are processes, or threads of several processes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::device {

// Runs `body` as each of `ranks` ranks, with `threads` ranks per process. Returns the exit codes of
// the processes, or minus the signal. Each process first calls `begin`.
inline std::vector<int> run_processes(
    int ranks, const std::function<int(Communicator&)>& body, int threads = 1,
    const std::function<void(int process)>& begin = [](int) {}) {
  const std::string job = "device-" + std::to_string(::getpid()) + '-' + std::to_string(ranks) +
                          '-' + std::to_string(threads);
  const auto run = [&](int rank) {
    try {
      ConnectOptions options;
      options.rank = rank;
      options.size = ranks;
      options.job = job;
      Communicator comm = Communicator::connect(options);
      return body(comm);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 99;
    }
  };
  std::vector<pid_t> children;
  for (int first = 0; first < ranks; first += threads) {
    const pid_t child = ::fork();
    if (child == 0) {
      begin(first / threads);
      std::atomic<int> code = 0;
      std::vector<std::thread> others;
      for (int rank = first + 1; rank < first + threads; ++rank) {
        others.emplace_back([&, rank] {
          const int own = run(rank);
          code = own == 0 ? code.load() : own;
        });
      }
      const int own = run(first);
      for (std::thread& other : others) {
        other.join();
      }
      std::fflush(nullptr);
      ::_exit(own == 0 ? code.load() : own);
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return codes;
}

}  // namespace unisono::device
