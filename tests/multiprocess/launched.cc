// A program that catches nothing, for tests of the reports and actions of `unisono run`: launched
// WHAT, where WHAT is the fault of the job.
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

// Waits until the test has made the file that the environment names.
void await_test(const char* variable) {
  while (::access(::getenv(variable), F_OK) != 0) {  // NOLINT(concurrency-mt-unsafe)
    ::usleep(1000);
  }
}

// Makes calls that metrics_test.py counts, and ends in a wait for rank 0.
void count(Communicator& comm) {
  comm.label("layer 3 \"attention\"\n");
  std::vector<float> data(1000, 1.0F);
  std::vector<float> part(10, 1.0F);
  std::vector<float> parts(20);
  {
    Communicator half = comm.split(comm.rank() % 2, comm.rank());
    for (int i = 0; i < 5; ++i) {
      half.all_gather(part, parts);
    }
    comm.barrier();
    ready(comm);
    await_test("LAUNCHED_STEP");
    half.all_gather(part, parts);
  }
  for (int i = 0; i < 100; ++i) {
    comm.all_reduce(data, unisono::sum);
  }
  if (comm.rank() == 0) {
    comm.send(data.data(), 8, 1);
  } else if (comm.rank() == 1) {
    comm.recv(data.data(), 8, 0);
  }
  comm.barrier();
  ready(comm);
  if (comm.rank() == 0) {
    await_test("LAUNCHED_END");
  }
  comm.barrier();
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
  } else if (what == "counts") {
    count(comm);
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
  } else if (what == "ends last") {  // as a process that leaves a core dump
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
