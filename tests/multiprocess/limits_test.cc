// Ranks whose process lacks a resource that an operation needs.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <vector>

#include "job.h"

namespace unisono::testing {
namespace {

// From now on this process gets no memory beyond `spare` bytes, so no stack for a thread.
void limit_memory(std::size_t spare) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + spare;
  const rlimit both{.rlim_cur = limit, .rlim_max = limit};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &both), 0);
}

TEST(Limits, ARankThatGetsNoThreadTellsAll) {
  Job job(2, [](Communicator& comm) {
    std::vector<float> data(100'000, 1.0F);
    if (comm.rank() == 0) {
      limit_memory(std::size_t{1} << 20);
    } else {
      ::usleep(50'000);  // so that rank 0 cannot end it at once
    }
    Request request = comm.all_reduce_async(std::span(data), sum);
    request.wait();
    comm.barrier();
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto report = job.ending(rank);
    ASSERT_TRUE(report.has_value());
    const std::string said = report->text;
    EXPECT_EQ(report->code, ErrorCode::resource) << said;
    EXPECT_NE(said.find("rank 0: cannot start the thread that moves operations"), std::string::npos)
        << said;
  }
}

}  // namespace
}  // namespace unisono::testing
