// Runs the seeds of MSCCL++'s plans, whole, cut anywhere and with single bytes changed: none may
// crash or hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "mscclpp_property.h"

namespace unisono {
namespace {

TEST(MscclppCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::mscclpp_property(file.text), "");
    EXPECT_EQ(static_cast<bool>(mscclpp::parse_plan(file.text)), file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 6U);
}

TEST(MscclppCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::mscclpp_property);
  }
}

}  // namespace
}  // namespace unisono
