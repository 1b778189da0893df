// Runs lists of hosts, whole, cut anywhere and with single bytes changed. Seeds named slurm_* are
// lists of Slurm, those named hosts_* are for --hosts, and both refuse bad_*. The folder is an
// argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "host_lists_property.h"

namespace unisono {
namespace {

bool takes(const std::string& list) {
  try {
    return !cli::parse_hosts(list).empty();
  } catch (const cli::UsageError&) {
    return false;
  }
}

bool slurm_takes(const std::string& list) {
  try {
    return !fuzz::address_of_slurm_list(list).empty();
  } catch (const Error&) {
    return false;
  }
}

TEST(HostLists, GoodIsTakenAndBadRefused) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::host_lists_property(file.text), "");
    EXPECT_EQ(takes(file.text), file.name.starts_with("hosts_"));
    if (!file.name.starts_with("hosts_")) {
      EXPECT_EQ(slurm_takes(file.text), file.name.starts_with("slurm_"));
    }
  }
}

TEST(HostLists, DamagedListsAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 2000, fuzz::host_lists_property);
  }
}

}  // namespace
}  // namespace unisono
