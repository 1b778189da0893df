// Runs the seeds of machines and tables of measured times, whole, cut anywhere and with single
// bytes changed: none may crash or hang, and `good_*` are taken, `bad_*` refused. The folder is an
// argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "machine_property.h"

namespace unisono {
namespace {

TEST(MachineCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::machine_property(file.text), "");
    const bool taken = cost::parse_machine_json(file.text, network_model::fit_machine) ||
                       network_model::parse_table(file.text);
    EXPECT_EQ(taken, file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 4U);
}

TEST(MachineCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 60, fuzz::machine_property);
  }
}

}  // namespace
}  // namespace unisono
