// Runs the seeds of counts, whole, cut anywhere and with single bytes changed: none may crash or
// hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "counts_property.h"

namespace unisono {
namespace {

TEST(CountsCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::counts_property(file.text), "");
    EXPECT_EQ(static_cast<bool>(parse_counts(file.text)), file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 15U);
}

TEST(CountsCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 500, fuzz::counts_property);
  }
}

}  // namespace
}  // namespace unisono
