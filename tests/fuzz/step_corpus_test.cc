// Runs the seeds of steps, whole, cut anywhere and with single bytes changed: none may crash or
// hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "step_property.h"

namespace unisono {
namespace {

TEST(StepCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::step_property(file.text), "");
    EXPECT_EQ(static_cast<bool>(step::parse_step_json(file.text)), file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 6U);
}

TEST(StepCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::step_property);
  }
}

}  // namespace
}  // namespace unisono
