// Every algorithm, for every number of ranks and every root: the schedule is correct and matches
// its claims, and the proofs reject every wrong variant.
#include "algorithms/catalog.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing_sanitizers.h"
#include "schedule/rank_order.h"
#include "schedule/verify.h"

namespace unisono {
namespace {

constexpr int kMostRanks = 64;
// Limit for tests over all roots. A sanitizer finds its errors with few ranks; correctness with
// many ranks is tested without one.
constexpr int kMostRootedRanks = kSanitized ? 33 : kMostRanks;
constexpr int kMostMutatedRanks = kSanitized ? 5 : 9;

std::string name_of(const Algorithm& algorithm) {
  return std::string(to_string(algorithm.collective)) + "/" + std::string(algorithm.name);
}

std::string describe(const Algorithm& algorithm, Shape shape) {
  return name_of(algorithm) + to_text(shape.parameters) + " n=" + std::to_string(shape.ranks) +
         " root=" + std::to_string(shape.root);
}

void for_each_shape(const Algorithm& algorithm, int least, int most,
                    const std::function<void(Shape)>& visit) {
  for (int ranks = least; ranks <= most; ++ranks) {
    if (!can_serve(algorithm, {.ranks = ranks})) {
      continue;
    }
    const int roots = is_rooted(algorithm.collective) ? ranks : 1;
    for (int root = 0; root < roots; ++root) {
      visit({.ranks = ranks, .root = root});
    }
  }
}

std::string texts(const std::vector<Finding>& findings) {
  std::string result;
  for (const Finding& finding : findings) {
    result += "\n  " + to_text(finding, 0);
  }
  return result;
}

bool same(const Schedule& a, const Schedule& b) {
  return a.collective == b.collective && a.algorithm == b.algorithm && a.ranks == b.ranks &&
         a.root == b.root && a.chunks == b.chunks && a.steps == b.steps && a.moves == b.moves;
}

class Catalog : public testing::TestWithParam<const Algorithm*> {};
class CatalogParameters : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Catalog, IsRightForAllRanksAndRoots) {
  const Algorithm& algorithm = *GetParam();
  for_each_shape(algorithm, 1, kMostRootedRanks, [&](Shape shape) {
    const Schedule schedule = build_schedule(algorithm, shape);
    const std::vector<Finding> findings = verify(schedule);
    ASSERT_TRUE(findings.empty()) << describe(algorithm, shape) << texts(findings);
    const std::vector<Finding> claims = verify_claims(algorithm, schedule);
    ASSERT_TRUE(claims.empty()) << describe(algorithm, shape) << texts(claims);
    EXPECT_EQ(schedule.ranks, shape.ranks);
    EXPECT_EQ(schedule.root, shape.root);
    EXPECT_EQ(schedule.algorithm, algorithm.name);
  });
}

TEST_P(Catalog, IsInPlaceAsClaimed) {
  const Algorithm& algorithm = *GetParam();
  bool clean = true;
  for_each_shape(algorithm, 1, kMostRootedRanks, [&](Shape shape) {
    const std::vector<Finding> findings = verify_in_place(build_schedule(algorithm, shape));
    clean = clean && findings.empty();
    EXPECT_TRUE(!algorithm.in_place || findings.empty())
        << describe(algorithm, shape) << texts(findings);
  });
  EXPECT_EQ(clean, algorithm.in_place);
}

TEST_P(Catalog, IsBuiltTheSameEachTime) {
  const Algorithm& algorithm = *GetParam();
  for_each_shape(algorithm, 1, 16, [&](Shape shape) {
    EXPECT_TRUE(same(build_schedule(algorithm, shape), build_schedule(algorithm, shape)))
        << describe(algorithm, shape);
  });
}

TEST_P(Catalog, KnowsTheLineOfEveryMove) {
  const Schedule schedule = build_schedule(*GetParam(), {.ranks = 5});
  EXPECT_EQ(schedule.file.rfind("src/algorithms/", 0), 0U) << schedule.file;
  EXPECT_NE(schedule.file.find(GetParam()->name), std::string::npos) << schedule.file;
  for (const Move& move : schedule.moves) {
    EXPECT_GT(move.line, 0U);
  }
}

// Returns values other than the defaults for the parameters that the algorithm takes.
std::vector<AlgorithmParameters> variants(const Algorithm& algorithm) {
  const AlgorithmParameters taken = complete(algorithm, {.ranks = 2}).parameters;
  std::vector<AlgorithmParameters> all = {{}};
  const auto vary = [&all](const auto& values, auto member) {
    std::vector<AlgorithmParameters> more;
    for (const AlgorithmParameters& parameters : all) {
      for (const auto& value : values) {
        more.push_back(parameters);
        more.back().*member = value;
      }
    }
    all = std::move(more);
  };
  if (taken.radix != 0) {
    vary(std::vector{2, 3, 5, 8}, &AlgorithmParameters::radix);
  }
  if (taken.segments != 0) {
    vary(std::vector{1, 2, 7}, &AlgorithmParameters::segments);
  }
  if (taken.aggregate != 0) {
    vary(std::vector{1, 2, 3, 64}, &AlgorithmParameters::aggregate);
  }
  if (taken.local != AlgorithmParameters::Levels{}) {
    vary(std::vector<AlgorithmParameters::Levels>{{1}, {2}, {3}, {2, 2}, {4, 2}, {2, 3, 2}, {64}},
         &AlgorithmParameters::local);
  }
  return all;
}

std::set<int> some_roots(const Algorithm& algorithm, int ranks) {
  return is_rooted(algorithm.collective) ? std::set{0, ranks / 2, ranks - 1} : std::set{0};
}

// Tests only some n and roots, because there are many parameters; the defaults are tested with all.
TEST_P(CatalogParameters, IsRight) {
  const Algorithm& algorithm = *GetParam();
  int served = 0;
  for (const AlgorithmParameters& parameters : variants(algorithm)) {
    for (int ranks = 1; ranks <= kMostRanks; ranks += ranks < 17 || ranks % 8 == 0 ? 1 : 7) {
      for (const int root : some_roots(algorithm, ranks)) {
        const Shape shape{.ranks = ranks, .root = root, .parameters = parameters};
        if (!can_serve(algorithm, shape)) {
          continue;
        }
        const Schedule schedule = build_schedule(algorithm, shape);
        ASSERT_EQ(texts(verify(schedule)), "") << describe(algorithm, shape);
        ASSERT_EQ(texts(verify_claims(algorithm, schedule)), "") << describe(algorithm, shape);
        if (algorithm.in_place) {
          ASSERT_EQ(texts(verify_in_place(schedule)), "") << describe(algorithm, shape);
        }
        EXPECT_EQ(schedule.algorithm, full_name(algorithm, shape));
        ++served;
      }
    }
  }
  EXPECT_GT(served, 60);
}

// One way to spoil a move; returns false if the move stays as it is.
struct Mutation {
  const char* name;
  bool spares_redundant;  // leaves the schedule right if the move is redundant
  bool (*apply)(const Schedule& schedule, Move& move);
};

constexpr Mutation kMutations[] = {
    {"shift chunk", true,
     [](const Schedule& schedule, Move& move) {
       const int places = schedule.chunks - move.chunks + 1;
       move.chunk = (move.chunk + 1) % places;
       return places > 1;
     }},
    {"flip combine", false,
     [](const Schedule&, Move& move) {
       move.combine = move.combine == Combine::reduce ? Combine::replace : Combine::reduce;
       return true;
     }},
    {"shift target", false,
     [](const Schedule& schedule, Move& move) {
       move.to = (move.to + 1) % schedule.ranks;
       return true;
     }},
    {"shift source", false,
     [](const Schedule& schedule, Move& move) {
       move.from = (move.from + 1) % schedule.ranks;
       return true;
     }},
    {"flip target buffer", true,
     [](const Schedule&, Move& move) {
       move.target = move.target == Buffer::output ? Buffer::scratch : Buffer::output;
       return true;
     }},
};

bool accepted(const Algorithm& algorithm, const Schedule& schedule) {
  return verify(schedule).empty() && verify_claims(algorithm, schedule).empty();
}

// These are the only equivalent mutants. Rank 0 begins its sum in rank order with a copy of its own
// input to scratch; without the copy, the scratch cell would read as that input anyway. The move
// exists so that the chain has the same form at every owner. Dropping it, or letting it copy
// elsewhere, changes no result.
bool is_redundant(const Move& move) {
  return move.from == 0 && move.to == 0 && move.source == Buffer::input &&
         move.target == Buffer::scratch && move.combine == Combine::replace;
}

class Mutants {
 public:
  explicit Mutants(const Algorithm& algorithm) : algorithm_(algorithm) {}

  void check_all_of(Shape shape) {
    shape_ = shape;
    const Schedule original = build_schedule(algorithm_, shape);
    for (std::size_t index = 0; index < original.moves.size(); ++index) {
      const Move& move = original.moves[index];
      Schedule mutant = original;
      mutant.moves.erase(mutant.moves.begin() + static_cast<std::ptrdiff_t>(index));
      check(mutant, move, "drop", true);
      for (const Mutation& mutation : kMutations) {
        mutant = original;
        if (mutation.apply(mutant, mutant.moves[index])) {
          check(mutant, move, mutation.name, mutation.spares_redundant);
        }
      }
    }
  }

  int rejected() const { return rejected_; }

 private:
  void check(const Schedule& mutant, const Move& move, const char* name, bool spares_redundant) {
    const bool passes = accepted(algorithm_, mutant);
    rejected_ += passes ? 0 : 1;
    EXPECT_EQ(passes, spares_redundant && is_redundant(move))
        << describe(algorithm_, shape_) << ": " << name << " step " << move.step << " " << move.from
        << "->" << move.to << " chunk " << move.chunk;
  }

  const Algorithm& algorithm_;
  Shape shape_;
  int rejected_ = 0;
};

TEST_P(Catalog, RejectsEverySingleMoveMutant) {
  Mutants mutants(*GetParam());
  for_each_shape(*GetParam(), 2, kMostMutatedRanks,
                 [&mutants](Shape shape) { mutants.check_all_of(shape); });
  EXPECT_GT(mutants.rejected(), kSanitized ? 10 : 100);
}

TEST_P(CatalogParameters, RejectsEverySingleMoveMutant) {
  const Algorithm& algorithm = *GetParam();
  Mutants mutants(algorithm);
  for (const AlgorithmParameters& parameters : variants(algorithm)) {
    for (const int ranks : {3, 4, 6}) {
      const Shape shape{.ranks = ranks,
                        .root = is_rooted(algorithm.collective) ? 1 : 0,
                        .parameters = parameters};
      if (can_serve(algorithm, shape)) {
        mutants.check_all_of(shape);
      }
    }
  }
  EXPECT_GT(mutants.rejected(), kSanitized ? 10 : 100);
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& instance) {
  return std::string(to_string(instance.param->collective)) + "_" +
         std::string(instance.param->name);
}

std::vector<const Algorithm*> with_parameters() {
  std::vector<const Algorithm*> algorithms(catalog().begin(), catalog().end());
  std::erase_if(algorithms, [](const Algorithm* each) { return each->defaults == nullptr; });
  return algorithms;
}

INSTANTIATE_TEST_SUITE_P(All, Catalog, testing::ValuesIn(catalog().begin(), catalog().end()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, CatalogParameters, testing::ValuesIn(with_parameters()), test_name);

// Counts per rank cut the vector where a rank's part ends, so the chunks must end there too.
TEST(CatalogList, HasChunksOfOneRankWhereCountsPerRankAreAllowed) {
  int allowing = 0;
  for (const Algorithm* algorithm : catalog()) {
    if (!algorithm->allows_v) {
      continue;
    }
    ++allowing;
    for_each_shape(*algorithm, 1, 16, [&](Shape shape) {
      const bool pairs = algorithm->collective == Collective::all_to_all;
      EXPECT_EQ(build_schedule(*algorithm, shape).chunks,
                pairs ? shape.ranks * shape.ranks : shape.ranks)
          << describe(*algorithm, shape);
    });
  }
  EXPECT_GE(allowing, 5);  // each of the five v-forms has one
}

// Tests both directions: an algorithm that does not claim rank order must have another order for
// some shape.
TEST(CatalogList, SumsInTheOrderOfTheRanksWhereItSaysSo) {
  for (const Algorithm* algorithm : catalog()) {
    bool always = true;
    for_each_shape(*algorithm, 1, 9, [&](Shape shape) {
      always = always && sums_in_rank_order(build_schedule(*algorithm, shape));
    });
    EXPECT_EQ(always && reduces(algorithm->collective), algorithm->rank_order)
        << name_of(*algorithm);
  }
}

TEST(CatalogList, HasNoNameTwiceAndServesEveryCollective) {
  std::set<std::string> names;
  std::set<Collective> served;
  for (const Algorithm* algorithm : catalog()) {
    EXPECT_TRUE(names.insert(name_of(*algorithm)).second) << name_of(*algorithm);
    EXPECT_FALSE(is_v_form(algorithm->collective));
    EXPECT_FALSE(algorithm->summary.empty()) << name_of(*algorithm);
    EXPECT_FALSE(algorithm->source.empty()) << name_of(*algorithm);
    served.insert(algorithm->collective);
  }
  EXPECT_EQ(served.size(), 11U);  // the plain collectives
}

TEST(CatalogList, FindsByCollectiveAndName) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->collective, Collective::all_reduce);
  EXPECT_EQ(find_algorithm(Collective::all_reduce, "pairwise"), nullptr);
  EXPECT_EQ(find_algorithm(Collective::all_gather_v, "ring"),
            find_algorithm(Collective::all_gather, "ring"));
  EXPECT_EQ(find_algorithm(Collective::barrier, ""), nullptr);
}

TEST(Claims, NameWhatDiffers) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  Schedule schedule = build_schedule(ring, {.ranks = 4});
  Move& move = schedule.moves.front();
  std::swap(move.from, move.to);
  schedule.steps = 7;
  const std::vector<Finding> findings = verify_claims(ring, schedule);
  ASSERT_EQ(findings.size(), 3U) << texts(findings);
  EXPECT_EQ(to_text(findings[0], 0), "claim: 7 steps, not 6");
  EXPECT_EQ(to_text(findings[1], 0), "step 0: edge 1->0 is not an edge of ring");
  EXPECT_EQ(findings[1].kind, Finding::Kind::claim);
  EXPECT_EQ(findings[1].line, move.line);
  EXPECT_EQ(to_text(findings[2], 0), "claim: 7 chunks sent by one rank, not 6");
}

TEST(Claims, RejectAnotherCollective) {
  const Algorithm& ring = *find_algorithm(Collective::all_gather, "ring");
  const Schedule other =
      build_schedule(*find_algorithm(Collective::reduce_scatter, "ring"), {.ranks = 4});
  const std::vector<Finding> findings = verify_claims(ring, other);
  ASSERT_EQ(findings.size(), 1U) << texts(findings);
  EXPECT_EQ(to_text(findings[0], 0), "claim: collective is reduce_scatter, not all_gather");
}

}  // namespace
}  // namespace unisono
