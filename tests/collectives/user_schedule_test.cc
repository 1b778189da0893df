// Schedules from files instead of an algorithm: accepted and refused ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ranks.h"

namespace unisono::testing {
namespace {

constexpr int kRanks = 3;

// A broadcast along the line 0 -> 1 -> 2, which no algorithm of the catalogue has in this form.
constexpr const char* kLine =
    R"({"format": "unisono.schedule/1", "collective": "broadcast", "algorithm": "line",
        "ranks": 3, "root": 0, "chunks": 1, "steps": 2,
        "moves": {"step": [0, 1], "from": [0, 1], "to": [1, 2], "chunk": [0, 0],
                  "source": ["input", "output"], "target": ["output", "output"],
                  "combine": ["replace", "replace"]}})";

class UserSchedule : public ::testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("unisono-own-" + std::to_string(::getpid()) + to_string(GetParam()));
    std::filesystem::create_directories(folder_);
    line_ = write("line.json", kLine);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  // Returns the line with one part of its text replaced.
  std::string write_with(const std::string& name, const std::string& from,
                         const std::string& to) const {
    std::string text = kLine;
    text.replace(text.find(from), from.size(), to);
    return write(name, text);
  }

  static void run(const RankBody& body) {
    const auto said = on_ranks(GetParam(), kRanks, body);
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      EXPECT_EQ(said[rank], "") << "rank " << rank;
    }
  }

  std::filesystem::path folder_;
  std::string line_;
};
INSTANTIATE_TEST_SUITE_P(On, UserSchedule, ::testing::Values(Ranks::processes, Ranks::threads),
                         [](const auto& kind) { return to_string(kind.param); });

Call broadcast_of(std::vector<int>& data, const std::string& path) {
  return {.collective = Collective::broadcast,
          .in = data.data(),
          .out = data.data(),
          .count = data.size(),
          .dtype = Dtype::i32,
          .algorithm = path};
}

// Returns the call's error; "" if there is none.
std::string refused(Communicator& comm, const Call& call) {
  try {
    comm.run(call);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string lacks(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos ? "" : "no \"" + part + "\" in: " + text + "; ";
}

TEST_P(UserSchedule, RunsForAnyCountAndIsNamed) {
  run([&](Communicator& comm) -> std::string {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1'000'003}}) {
      std::vector<int> data(count, comm.rank() == 0 ? 7 : comm.rank());
      comm.run(broadcast_of(data, line_));
      if (data != std::vector<int>(count, 7)) {
        return "wrong at count " + std::to_string(count);
      }
    }
    std::vector<int> data(1);
    const Explanation why = comm.explain(broadcast_of(data, line_));
    return why.chosen == "line.json" && why.why == Explanation::Why::call ? "" : why.text();
  });
}

TEST_P(UserSchedule, RefusesWhatItIsNotFor) {
  run([&](Communicator& comm) {
    std::vector<int> data(4);
    Call from_other_root = broadcast_of(data, line_);
    from_other_root.root = 1;
    std::string wrong = lacks(refused(comm, from_other_root),
                              "line.json is for broadcast of 3 ranks from root 0, not for "
                              "broadcast of 3 ranks from root 1");
    Call other = broadcast_of(data, line_);
    other.collective = Collective::all_reduce;
    return wrong + lacks(refused(comm, other), "not for all_reduce of 3 ranks");
  });
}

TEST_P(UserSchedule, RefusesWhatIsNotRight) {
  const std::string lost = write_with("lost.json", "[1, 2]", "[1, 1]");
  const std::string cut = write("cut.json", "{\"format\":\n ");
  const std::string word = write_with("word.json", "\"input\"", "\"inptu\"");
  run([&](Communicator& comm) {
    std::vector<int> data(4);
    std::string wrong =
        lacks(refused(comm, broadcast_of(data, lost)), "lost.json is not a valid schedule: ");
    wrong += lacks(refused(comm, broadcast_of(data, cut)), "cut.json:2: not valid JSON");
    wrong += lacks(refused(comm, broadcast_of(data, word)), "word.json at /moves/source/0: ");
    return wrong + lacks(refused(comm, broadcast_of(data, (folder_ / "absent.json").string())),
                         "cannot read the schedule ");
  });
}

// Both files are valid and have the same name, so only their contents differ.
TEST_P(UserSchedule, RanksWithOtherFilesAreTold) {
  std::filesystem::create_directories(folder_ / "other");
  const std::string other = write_with("other/line.json", "\"line\"", "\"Line\"");
  run([&](Communicator& comm) {
    std::vector<int> data(4);
    std::string text = refused(comm, broadcast_of(data, comm.rank() == 1 ? other : line_));
    if (comm.rank() == 0) {  // it has only sent: its next call reports the mismatch
      text += refused(comm, {.collective = Collective::barrier});
    }
    return lacks(text, "mismatch");
  });
}

}  // namespace
}  // namespace unisono::testing
