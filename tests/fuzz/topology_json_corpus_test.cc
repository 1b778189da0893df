// Runs the seeds of topologies and workloads, whole, cut anywhere and with single bytes changed:
// none may crash or hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "topology_json_property.h"

namespace unisono {
namespace {

TEST(TopologyCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::topology_json_property(file.text), "");
    const bool taken =
        parse_topology_json(file.text) || network_model::parse_workload_json(file.text);
    EXPECT_EQ(taken, file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 8U);
}

TEST(TopologyCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::topology_json_property);
  }
}

}  // namespace
}  // namespace unisono
