// Runs the seeds of MSCCL programs, whole, cut anywhere and with single bytes changed: none may
// crash or hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "msccl_property.h"

namespace unisono {
namespace {

TEST(MscclCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::msccl_property(file.text), "");
    EXPECT_EQ(static_cast<bool>(msccl::parse_xml(file.text)), file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 6U);
}

TEST(MscclCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::msccl_property);
  }
}

}  // namespace
}  // namespace unisono
