// Runs the seeds of benchmark output, whole, cut anywhere and with single bytes changed: none may
// crash or hang, `good_*` must be accepted, and `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "benchmark_log_property.h"
#include "corpus.h"

namespace unisono {
namespace {

TEST(BenchmarkLogCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::benchmark_log_property(file.text), "");
    const auto log = network_model::parse_benchmark_log(
        file.text, {.collective = Collective::all_reduce, .ranks = 4});
    EXPECT_EQ(log.value.has_value(), file.name.starts_with("good_")) << log.message;
  }
  EXPECT_GE(files.size(), 6U);
}

TEST(BenchmarkLogCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 100, fuzz::benchmark_log_property);
  }
}

}  // namespace
}  // namespace unisono
