// Tests which profile is read, and which algorithm it selects.
#include "select/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/launcher_env.h"
#include "comm/connect.h"
#include "comm/waiter.h"
#include "cost/machine_json.h"
#include "network_model/fit_machine.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

constexpr const char* kChoices =
    R"({"format": "unisono.machine/1", "choices": {)"
    R"("collective": ["all_reduce", "all_reduce", "all_gather", "broadcast", "reduce_scatter"],)"
    R"("ranks": [2, 2, 2, 2, 2], "from_bytes": [0, 4096, 0, 0, 0],)"
    R"("algorithm": ["ring", "halving_doubling", "neighbour_exchange", "chain:segments=3", "ring"]}})";

class ProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("unisono-profile-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    file_ = write("profile.json", kChoices);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  // Returns, on rank 0, the algorithm of a call with `count` f32 on `ranks` ranks.
  std::string algorithm(Call call, int ranks, const ConnectOptions& options) const {
    std::string name;
    run_threads(
        ranks,
        [&](Communicator& comm) {
          std::vector<float> in(call.count * static_cast<std::size_t>(ranks));
          std::vector<float> out(in.size());
          Call mine = call;
          mine.in = in.data();
          mine.out = out.data();
          mine.dtype = Dtype::f32;
          const Plan plan = comm.plan(mine);
          if (comm.rank() == 0) {
            name = plan.algorithm();
          }
        },
        options);
    return name;
  }
  std::string algorithm(Collective collective, std::size_t count, int ranks) const {
    ConnectOptions options;
    options.profile = file_;
    return algorithm({.collective = collective, .count = count}, ranks, options);
  }

  std::filesystem::path folder_;
  std::string file_;
};

TEST_F(ProfileTest, ChoosesByCollectiveAndSize) {
  EXPECT_EQ(algorithm(Collective::all_reduce, 1023, 2), "ring");
  EXPECT_EQ(algorithm(Collective::all_reduce, 1024, 2), "halving_doubling");
  EXPECT_EQ(algorithm(Collective::broadcast, 8, 2), "chain:segments=3");
}

TEST_F(ProfileTest, LeavesWhatItDoesNotKnowToTheDefault) {
  EXPECT_EQ(algorithm(Collective::gather, 8, 2), "flat");
}

TEST_F(ProfileTest, ServesOtherRankCountsWhereItCan) {
  EXPECT_EQ(algorithm(Collective::all_reduce, 8, 3), "ring");
  EXPECT_EQ(algorithm(Collective::all_gather, 8, 2), "neighbour_exchange");
  EXPECT_EQ(algorithm(Collective::all_gather, 8, 3), "flat");  // needs an even number of ranks
}

TEST_F(ProfileTest, IsOverruledByTheOptionAndTheCall) {
  ConnectOptions options;
  options.profile = file_;
  options.algorithm = "all_reduce=recursive_doubling";
  EXPECT_EQ(algorithm({.collective = Collective::all_reduce, .count = 8}, 2, options),
            "recursive_doubling");
  EXPECT_EQ(algorithm({.collective = Collective::all_reduce, .count = 8, .algorithm = "one_shot"},
                      2, options),
            "one_shot");
  EXPECT_EQ(algorithm({.collective = Collective::broadcast, .count = 8}, 2, options),
            "chain:segments=3");
}

TEST_F(ProfileTest, NoneIsTheBuiltInChoice) {
  ConnectOptions options;
  options.profile = "none";
  EXPECT_EQ(algorithm({.collective = Collective::all_reduce, .count = 8}, 2, options), "one_shot");
}

TEST_F(ProfileTest, TheVectorOfAVFormIsTheSumOfItsParts) {
  ConnectOptions options;
  options.profile =
      write("v.json", R"({"format": "unisono.machine/1", "choices": {)"
                      R"("collective": ["all_gather", "all_gather"], "ranks": [2, 2],)"
                      R"("from_bytes": [0, 40], "algorithm": ["flat", "ring"]}})");
  const std::vector<std::size_t> small = {4, 5};
  const std::vector<std::size_t> large = {1, 9};
  run_threads(
      2,
      [&](Communicator& comm) {
        const auto chosen = [&](const std::vector<std::size_t>& counts) {
          std::vector<float> in(counts[static_cast<std::size_t>(comm.rank())]);
          std::vector<float> out(counts[0] + counts[1]);
          const Call call{.collective = Collective::all_gather_v,
                          .in = in.data(),
                          .out = out.data(),
                          .dtype = Dtype::f32,
                          .counts = counts};
          return std::string(comm.plan(call).algorithm());
        };
        EXPECT_EQ(chosen(small), "flat");
        EXPECT_EQ(chosen(large), "ring");
      },
      options);
}

// Returns the errors of two ranks with different profiles; "" for a rank without an error.
std::vector<std::string> told(const std::string& job, const std::vector<std::string>& profiles,
                              std::size_t count, int threads) {
  std::vector<std::string> said(2);
  ConnectOptions options;
  options.job = job + "-" + std::to_string(::getpid());
  options.size = 2;
  options.threads = threads;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank, mine = options]() mutable {
      mine.rank = rank;
      mine.profile = profiles[static_cast<std::size_t>(rank)];
      try {
        Communicator comm = Communicator::connect(mine);
        std::vector<float> values(count, 1);
        comm.all_reduce(values, sum);
        EXPECT_EQ(values, std::vector<float>(count, 2));
      } catch (const Error& error) {
        said[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  return said;
}

// Ranks with different profiles report the difference instead of running different algorithms.
TEST_F(ProfileTest, DifferentChoicesAreAMismatch) {
  for (const std::string& text : told("profile-mismatch", {file_, "none"}, 1, 1)) {
    EXPECT_NE(text.find("mismatch"), std::string::npos) << text;
    EXPECT_NE(text.find("(ring)"), std::string::npos) << text;
    EXPECT_NE(text.find("(one_shot)"), std::string::npos) << text;
  }
}

// Ranks with different profiles do not cut a call into different slices for their threads.
TEST_F(ProfileTest, LimitsTheThreadsOfACall) {
  const std::string one =
      write("threads.json", R"({"format": "unisono.machine/1", "threads": {)"
                            R"("collective": ["all_reduce", "all_reduce"], "ranks": [2, 2],)"
                            R"("from_bytes": [0, 1000000], "threads": [1, 7]}})");
  constexpr std::size_t kShort = 100'000;  // long enough for two threads
  for (const std::string& text : told("profile-one-thread", {one, "none"}, kShort, 2)) {
    EXPECT_NE(text.find("mismatch"), std::string::npos) << text;
  }
  const std::vector<std::string> nothing(2);
  EXPECT_EQ(told("profile-two-threads", {one, "none"}, 10 * kShort, 2), nothing);
  EXPECT_EQ(told("profile-one-each", {one, one}, kShort, 2), nothing);
}

std::string refusal(const std::string& path) {
  try {
    static_cast<void>(Profile::find(path));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "NO ERROR";
}

TEST_F(ProfileTest, ABrokenFileIsAConfigErrorWithItsPlace) {
  const std::string absent = (folder_ / "absent.json").string();
  EXPECT_EQ(refusal(absent), "config: profile " + absent + " cannot be read");
  const std::string cut = write("cut.json", "{\"format\": ");
  const std::string refused = refusal(cut);
  EXPECT_TRUE(refused.starts_with("config: profile " + cut + ":1: not valid JSON: ")) << refused;
  const std::string old = write("old.json", R"({"format": "unisono.machine/0"})");
  EXPECT_EQ(refusal(old), "config: profile " + old +
                              " at /format: unknown version, this reads unisono.machine/1");
  ConnectOptions options;
  options.profile = old;
  EXPECT_THROW(Communicator::connect(options), Error);
}

TEST_F(ProfileTest, TheModelIsReadWhenAskedFor) {
  EXPECT_EQ(Profile().machine(), nullptr);
  const Profile profile(file_);  // the choices alone are enough
  EXPECT_THROW(profile.machine(), Error);
  const std::string measured =
      R"({"format": "unisono.machine/1", "name": "m", "points": )"
      R"({"collective": ["barrier"], "algorithm": ["flat"], "ranks": [2], "bytes": [0],)"
      R"( "time_us": [1.5]}})";
  const auto fitted = cost::parse_machine_json(measured, network_model::fit_machine);
  ASSERT_TRUE(fitted);
  const Profile whole(write("whole.json", to_json(*fitted.value)));
  ASSERT_NE(whole.machine(), nullptr);
  EXPECT_TRUE(whole.machine()->knows(Collective::barrier, "flat"));
  // Only libunisono_lab fits a machine.
  const Profile unfitted(write("unfitted.json", measured));
  ASSERT_NE(unfitted.machine(), nullptr);
  EXPECT_FALSE(unfitted.machine()->knows(Collective::barrier, "flat"));
}

WaitPolicy policy_with(const std::string& profile, const WaitOptions& wait) {
  ConnectOptions options;
  options.rank = 0;
  options.size = 1;
  options.profile = profile;
  options.wait = wait;
  return connect(options)->wait_environment().wait_policy();
}

TEST_F(ProfileTest, SaysHowToWaitUnlessTheOptionDoes) {
  const std::string path = write(
      "waits.json",
      R"({"format": "unisono.machine/1", "waits": {"ranks": [2, 2], "oversubscribed": [true, false],)"
      R"( "policy": ["spin=1,yield_us=2", "spin=3,yield_us=4"]}})");
  EXPECT_EQ(policy_with("none", {}), built_in_wait(false));
  EXPECT_EQ(policy_with(path, {}), (WaitPolicy{.spin = 3, .yield_us = 4}));
  EXPECT_EQ(policy_with(path, {.spin = 9}), (WaitPolicy{.spin = 9, .yield_us = 4}));
  EXPECT_THROW(policy_with("none", {.spin = -2}), Error);
}

TEST(WaitOption, AnyPolicyGivesTheSameResults) {
  for (const WaitOptions policy : {WaitOptions{.spin = 0, .yield_us = 0}, WaitOptions{.spin = 0},
                                   WaitOptions{.spin = 100000, .yield_us = 0}}) {
    ConnectOptions options;
    options.profile = "none";
    options.wait = policy;
    run_threads(
        3,
        [](Communicator& comm) {
          for (int round = 0; round < 20; ++round) {
            std::vector<int> data(round % 2 == 0 ? 1 : 100'000, comm.rank());
            comm.all_reduce(data, sum);
            EXPECT_EQ(data, std::vector<int>(data.size(), 3));
          }
        },
        options);
  }
}

std::string path_with(const std::map<std::string, std::string>& variables) {
  return default_profile_path([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(DefaultProfilePath, FollowsTheConfigurationFolder) {
  EXPECT_EQ(path_with({{"XDG_CONFIG_HOME", "/c"}, {"HOME", "/h"}}), "/c/unisono/profile.json");
  EXPECT_EQ(path_with({{"XDG_CONFIG_HOME", ""}, {"HOME", "/h"}}),
            "/h/.config/unisono/profile.json");
  EXPECT_EQ(path_with({}), "");
}

TEST(ProfileOption, ComesBeforeTheVariable) {
  const auto lookup = [](std::string_view name) -> std::optional<std::string> {
    return name == "UNISONO_PROFILE" ? std::optional<std::string>("from-variable") : std::nullopt;
  };
  EXPECT_EQ(resolve({}, lookup).profile, "from-variable");
  ConnectOptions options;
  options.profile = "from-option";
  EXPECT_EQ(resolve(options, lookup).profile, "from-option");
}

}  // namespace
}  // namespace unisono::comm
