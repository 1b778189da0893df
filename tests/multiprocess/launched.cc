// A program that catches nothing, for tests of what `unisono run` says and does about its ranks:
// launched WHAT, where WHAT is what happens to the job.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "unisono/unisono.hpp"

namespace {

using unisono::Communicator;

void work_for_ever(Communicator& comm) {
  std::vector<float> data(1000, 1.0F);
  for (;;) {
    comm.all_reduce(data, unisono::sum);
  }
}

void ready(const Communicator& comm) {
  std::printf("rank %d is ready\n", comm.rank());
  std::fflush(stdout);
}

// Waits until the launcher has seen the end of a rank.
void await_end_of(const std::string& rank) {
  for (;;) {
    std::ifstream log(::getenv("UNISONO_LAUNCHER"));  // NOLINT(concurrency-mt-unsafe)
    for (std::string line; std::getline(log, line);) {
      if (line.starts_with("end " + rank + " ")) {
        return;
      }
    }
    ::usleep(1000);
  }
}

int run(Communicator& comm, const std::string& what) {
  if (what == "works") {
    ready(comm);
    work_for_ever(comm);
  } else if (what == "swallows" || what == "recovers") {
    try {
      if (comm.rank() == 1) {
        comm.abort("for the test");
      }
      work_for_ever(comm);
    } catch (const unisono::Error&) {
      if (what == "recovers") {
        comm.shrink().barrier();
      }
    }
  } else if (what == "waits") {
    comm.label("layer 3 attention");
    ready(comm);
    if (comm.rank() == 0) {
      ::pause();
    }
    comm.barrier();
  } else if (comm.rank() != 2) {
    work_for_ever(comm);
  } else if (what == "dies") {
    ::raise(SIGKILL);
  } else if (what == "stands still") {
    ::pause();
  } else if (what == "ends last") {  // as a process does that leaves a core dump
    {
      const Communicator last = std::move(comm);
    }
    await_end_of("0");
    return 7;
  }
  return 0;  // "leaves"
}

}  // namespace

int main(int argc, char** argv) {
  Communicator comm = Communicator::connect();
  return run(comm, argc > 1 ? argv[1] : "works");
}
