// Runs the seeds of pipelines, whole, cut anywhere and with single bytes changed: none may crash or
// hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "pipeline_property.h"

namespace unisono {
namespace {

TEST(PipelineCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::pipeline_property(file.text), "");
    const bool taken = pipeline::parse_pipeline_json(file.text) || pipeline::parse_csv(file.text);
    EXPECT_EQ(taken, file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 10U);
}

TEST(PipelineCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::pipeline_property);
  }
}

}  // namespace
}  // namespace unisono
