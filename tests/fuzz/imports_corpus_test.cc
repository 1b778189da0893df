// Runs the seeds of other programs' recordings, whole, cut anywhere and with single bytes changed:
// none may crash, hang or execute code, `good_*` must be accepted, and `bad_*` refused. The folder
// is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "imports_property.h"

namespace unisono {
namespace {

TEST(ImportsCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::imports_property(file.text), "");
    EXPECT_EQ(fuzz::refusal_of_import(file.text).empty(), file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 35U);
}

// Neither as dimensions nor as ranks: no recursion may be as deep as a file requests.
TEST(ImportsCorpus, DeepNestsAreNoTrouble) {
  constexpr std::size_t kDepth = 200'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const auto document = [](const std::string& ranks, const std::string& dims) {
    return R"({"distributedInfo": {"rank": 0, "world_size": 2, "pg_config": [{"pg_name": "a", "ranks": )" +
           ranks +
           R"(}]}, "traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", )"
           R"("ts": 1, "dur": 2, "args": {"Input type": ["float"], "Input Dims": )" +
           dims + "}}]}";
  };
  EXPECT_EQ(fuzz::imports_property(document("[0, 1]", deep)), "");
  EXPECT_EQ(fuzz::imports_property(document(deep, "[[4]]")), "");
}

TEST(ImportsCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 300, fuzz::imports_property);
  }
}

}  // namespace
}  // namespace unisono
