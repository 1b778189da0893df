#include "unisono/parallel/mesh.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace unisono::parallel {
namespace {

// The rank layout of Megatron-LM's RankGenerator, by division and remainder of each rank: the order
// "tp-cp-ep-dp-pp", tp fastest.
struct Layout {
  const char* model;
  int ranks, tp, cp, pp, ep;  // ep 0: no experts; tp does not shard them
};

// Published measurements with Megatron: the number of devices and the model axes.
constexpr Layout kPublished[] = {
    // NVIDIA/Megatron-LM, examples/sc21/run_table_1.sh: Narayanan et al., SC 2021, table 1.
    {"GPT 1.7B", 32, 1, 1, 1, 0},
    {"GPT 3.6B", 64, 2, 1, 1, 0},
    {"GPT 7.5B", 128, 4, 1, 1, 0},
    {"GPT 18B", 256, 8, 1, 1, 0},
    {"GPT 39B", 512, 8, 1, 2, 0},
    {"GPT 76B", 1024, 8, 1, 4, 0},
    {"GPT 145B", 1536, 8, 1, 8, 0},
    {"GPT 310B", 1920, 8, 1, 16, 0},
    {"GPT 530B", 2520, 8, 1, 35, 0},
    {"GPT 1T", 3072, 8, 1, 64, 0},
    // NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md, release 25.11.
    {"Llama 3 70B, H100", 64, 4, 1, 8, 0},
    {"Llama 3.1 405B, H100", 1024, 8, 2, 8, 0},
    {"Llama 3.1 405B, B200", 128, 4, 2, 8, 0},
    {"Llama 3.1 405B, GB200", 256, 4, 1, 16, 0},
    {"Llama 3.1 405B, GB300", 256, 2, 2, 8, 0},
    {"DeepSeek-V3, GB200", 256, 1, 1, 4, 64},
    {"DeepSeek-V3, GB300", 256, 1, 1, 2, 32},
    {"GPT-OSS 120B, GB300", 64, 1, 1, 1, 64},
    {"Qwen3 235B, GB300", 256, 1, 1, 4, 16},
    {"Qwen3 30B, H100", 16, 1, 1, 2, 8},
};

// Returns the ranks that share a value of `key`, by division and remainder like the reference.
template <typename Key>
std::set<std::vector<int>> groups_by(int ranks, const Key& key) {
  std::map<int, std::vector<int>> by;
  for (int rank = 0; rank < ranks; ++rank) {
    by[key(rank)].push_back(rank);
  }
  std::set<std::vector<int>> groups;
  for (auto& [_, members] : by) {
    groups.insert(members);
  }
  return groups;
}

std::set<std::vector<int>> as_set(const std::vector<std::vector<int>>& groups) {
  return {groups.begin(), groups.end()};
}

TEST(Mesh, HasTheGroupsOfPublishedLayouts) {
  ASSERT_EQ(std::size(kPublished), 20U);
  for (const Layout& l : kPublished) {
    SCOPED_TRACE(l.model);
    const int dp = l.ranks / (l.tp * l.cp * l.pp);
    ASSERT_EQ(l.tp * l.cp * l.pp * dp, l.ranks);
    std::string text = "pp=" + std::to_string(l.pp) + ",dp=" + std::to_string(dp) +
                       ",cp=" + std::to_string(l.cp) + ",tp=" + std::to_string(l.tp);
    const int inner = l.tp * l.cp * dp;
    if (l.ep != 0) {
      text += ";edp=" + std::to_string(inner / l.ep) + ",ep=" + std::to_string(l.ep);
    }
    const MeshShape mesh = MeshShape::parse(text, l.ranks);
    const auto expect = [&](const char* axes, const auto& key) {
      EXPECT_EQ(as_set(mesh.groups(axes)), groups_by(l.ranks, key)) << axes;
    };
    expect("tp", [&](int r) { return r / l.tp; });
    expect("cp", [&](int r) { return r / (l.tp * l.cp) * l.tp + r % l.tp; });
    expect("dp", [&](int r) { return r / inner * (l.tp * l.cp) + r % (l.tp * l.cp); });
    expect("dp,cp", [&](int r) { return r / inner * l.tp + r % l.tp; });
    expect("pp", [&](int r) { return r % inner; });
    expect("pp,tp", [&](int r) { return r % inner / l.tp; });
    if (l.ep != 0) {
      expect("ep", [&](int r) { return r / l.ep; });
      expect("edp", [&](int r) { return r / inner * l.ep + r % l.ep; });
    }
  }
}

TEST(Mesh, FoldsExpertsThatTensorParallelismCuts) {
  // Attention tp=4, cp=2, dp=2; experts etp=2, ep=4, edp=2 over the same 16 ranks, twice.
  const MeshShape mesh = MeshShape::parse("pp=2,dp=2,cp=2,tp=4;edp=2,ep=4,etp=2", 32);
  EXPECT_EQ(as_set(mesh.groups("etp")), groups_by(32, [](int r) { return r / 2; }));
  EXPECT_EQ(as_set(mesh.groups("ep")), groups_by(32, [](int r) { return r / 8 * 2 + r % 2; }));
  EXPECT_EQ(as_set(mesh.groups("edp")), groups_by(32, [](int r) { return r / 16 * 8 + r % 8; }));
}

TEST(Mesh, HasTheGroupsOfMegatronsDocumentedExample) {
  // 16 ranks with tp=2 and pp=4, as listed in Megatron-LM's comment to initialize_model_parallel.
  const MeshShape mesh = MeshShape::parse("pp=4,dp=2,tp=2", 16);
  const std::vector<std::vector<int>> tp = {{0, 1}, {2, 3},   {4, 5},   {6, 7},
                                            {8, 9}, {10, 11}, {12, 13}, {14, 15}};
  const std::vector<std::vector<int>> pp = {
      {0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}};
  const std::vector<std::vector<int>> dp = {{0, 2},  {1, 3},  {4, 6},   {5, 7},
                                            {8, 10}, {9, 11}, {12, 14}, {13, 15}};
  EXPECT_EQ(mesh.groups("tp"), tp);
  EXPECT_EQ(mesh.groups("pp"), pp);
  EXPECT_EQ(mesh.groups("dp"), dp);
}

TEST(Mesh, CoordinatesNumberTheGroupsOfAThousandRanks) {
  const MeshShape mesh = MeshShape::parse("pp=8,dp=4,cp=4,tp=8;ep=dp*cp,etp=tp", 1024);
  for (const char* axes : {"tp", "cp", "dp,cp", "pp,tp", "ep", "pp,dp,cp,tp"}) {
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const std::vector<int> group = mesh.group(rank, axes);
      ASSERT_EQ(static_cast<int>(group.size()), mesh.size(axes));
      ASSERT_EQ(group[static_cast<std::size_t>(mesh.coordinate(rank, axes))], rank) << axes;
    }
  }
  EXPECT_EQ(mesh.text(), "pp=8,dp=4,cp=4,tp=8;ep=16,etp=8");
  EXPECT_EQ(mesh.canonical("tp, pp"), "pp,tp");
}

std::string error_of(const std::string& text, int ranks, const char* axes = nullptr) {
  try {
    const MeshShape mesh = MeshShape::parse(text, ranks);
    return axes == nullptr ? "none" : (mesh.size(axes), "none");
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
}

TEST(Mesh, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("dp=2,tp=4", 6),
            "config: mesh: the axes of \"dp=2,tp=4\" have 8 ranks, but there are 6");
  EXPECT_EQ(
      error_of("dp=2,tp=0", 2),
      "config: mesh: the size \"0\" of axis \"tp\" is not a product of positive numbers and of "
      "axes before it");
  EXPECT_EQ(error_of("dp=2,dp=2", 4), "config: mesh: axis \"dp\" appears twice");
  EXPECT_EQ(error_of("", 1), "config: mesh: \"\" is not an axis with its size");
  EXPECT_EQ(error_of("dp", 1), "config: mesh: \"dp\" is not an axis with its size");
  EXPECT_EQ(error_of("a=65536,b=65536", 0),
            "config: mesh: the axes have more ranks than an int counts");
  EXPECT_EQ(error_of("dp=4,tp=2;ep=4", 8),
            "config: mesh: the axes after the semicolon have 4 ranks, and the last axes before it "
            "have 2, 8");
  EXPECT_EQ(error_of("dp=4,tp=2", 8, "pp"),
            "usage: mesh: there is no axis \"pp\" in \"dp=4,tp=2\"");
  EXPECT_EQ(error_of("dp=4,tp=2", 8, "tp,tp"), "usage: mesh: axis \"tp\" is named twice");
  EXPECT_EQ(error_of("dp=4,tp=2;ep=8", 8, "dp,ep"),
            "usage: mesh: \"dp,ep\" names axes of expert layers and axes under them");
}

TEST(Mesh, GroupsAreThoseOfTheShape) {
  run_threads(8, [](Communicator& comm) {
    Mesh mesh = Mesh::create(comm, "dp=2,cp=2,tp=2;ep=4,etp=2");
    for (const char* axes : {"tp", "dp", "dp,cp", "ep", "cp,tp", "dp,cp,tp"}) {
      Communicator& group = mesh.axes(axes);
      std::vector<int> members(static_cast<std::size_t>(group.size()));
      group.all_gather(std::vector<int>{comm.rank()}, members);
      EXPECT_EQ(members, mesh.shape().group(comm.rank(), axes)) << axes;
      EXPECT_EQ(group.rank(), mesh.coordinate(axes)) << axes;
      EXPECT_EQ(&group, &mesh.axes(axes));
    }
  });
}

TEST(Mesh, RefusesTextsThatDiffer) {
  std::atomic<int> told = 0;
  run_threads(4, [&](Communicator& comm) {
    try {
      Mesh::create(comm, comm.rank() == 2 ? "dp=4,tp=1" : "dp=2,tp=2");
    } catch (const Error& error) {
      told += error.code() == ErrorCode::mismatch ? 1 : 0;
    }
  });
  EXPECT_EQ(told, 4);
}

}  // namespace
}  // namespace unisono::parallel
