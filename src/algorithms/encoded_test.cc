// Encoded moves of whole algorithms: which algorithms may be encoded between hosts, and that the
// proof rejects additional roundings.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "algorithms/two_shot_hosts.h"
#include "base/collectives.h"
#include "schedule/roundings.h"
#include "schedule/verify.h"

namespace unisono::algorithms {
namespace {

using Hosts = std::vector<int>;

Hosts one_each(int ranks) {
  Hosts hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(rank);
  }
  return hosts;
}

Hosts some_each(int hosts, int ranks) {
  Hosts all;
  for (int rank = 0; rank < hosts * ranks; ++rank) {
    all.push_back(rank / ranks);
  }
  return all;
}

std::string first_fault(const Schedule& schedule) {
  const auto faults = check_roundings(schedule);
  return faults.empty() ? "" : faults.front().what;
}

// Returns the fault of the algorithm with one rank per host, or with `hosts`.
std::string fault_of(const char* name, const Hosts& hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, name);
  const Shape shape{.ranks = ranks, .parameters = parse_parameters(algorithm, name)};
  const Schedule encoded = encode_moves(build_schedule(algorithm, shape), hosts, MoveCode::i8);
  EXPECT_EQ(verify(encoded).size(), 0U) << name;
  return first_fault(encoded);
}

const Hosts kHosts[] = {{0},
                        {0, 1},
                        {0, 1, 2},
                        one_each(8),
                        one_each(13),
                        some_each(2, 2),
                        some_each(4, 2),
                        some_each(3, 5),
                        {0, 1, 0, 1, 2, 2},
                        {0, 0, 0, 1},
                        {5, 5, 3, 3, 3}};

TEST(EncodedMoves, TwoShotsRoundEachInputAndTheResultOnce) {
  for (const Hosts& hosts : kHosts) {
    const Schedule plain = two_shot_between(hosts);
    EXPECT_EQ(verify(plain).size(), 0U) << hosts.size();
    EXPECT_EQ(verify_in_place(plain).size(), 0U) << hosts.size();
    const Schedule encoded = encode_moves(plain, hosts, MoveCode::i8);
    EXPECT_EQ(verify(encoded).size(), 0U) << hosts.size();
    EXPECT_EQ(verify_in_place(encoded).size(), 0U) << hosts.size();
    EXPECT_EQ(first_fault(encoded), "") << hosts.size();
  }
}

TEST(EncodedMoves, OnlyThoseBetweenHostsAreEncoded) {
  const Hosts hosts = some_each(3, 5);
  int encoded = 0;
  for (const Move& move : encode_moves(two_shot_between(hosts), hosts, MoveCode::bf16).moves) {
    const bool between =
        hosts[static_cast<std::size_t>(move.from)] != hosts[static_cast<std::size_t>(move.to)];
    const bool rounds = move.from == move.to && move.source == move.target;
    EXPECT_EQ(move.code, between || rounds ? MoveCode::bf16 : MoveCode::none);
    encoded += between ? move.chunks : 0;
  }
  EXPECT_EQ(encoded, 15 * 2 * 2);  // 2 chunks each way from every rank, of 15
}

TEST(EncodedMoves, OneHostIsLeftAsItIs) {
  const Hosts hosts(6, 0);
  const Schedule plain = two_shot_between(hosts);
  EXPECT_EQ(encode_moves(plain, hosts, MoveCode::i8).moves, plain.moves);
}

TEST(EncodedMoves, AlgorithmsThatRoundTwiceAreFound) {
  EXPECT_EQ(fault_of("flat", one_each(8)), "");
  EXPECT_NE(fault_of("ring", one_each(3)).find("an input is rounded twice"), std::string::npos);
  EXPECT_NE(fault_of("halving_doubling", one_each(8)).find("rounded twice"), std::string::npos);
  EXPECT_NE(fault_of("double_tree", one_each(8)).find("rounded twice"), std::string::npos);
  EXPECT_NE(fault_of("hierarchical:local=2", some_each(4, 2)).find("rounded twice"),
            std::string::npos);
  // With two hosts, each host sends each of its sums to the other host once.
  EXPECT_EQ(fault_of("hierarchical:local=4", some_each(2, 4)), "");
  EXPECT_EQ(fault_of("halving_doubling", one_each(2)), "");
}

TEST(EncodedMoves, RanksThatSumForThemselvesEndWithOtherBits) {
  EXPECT_EQ(fault_of("one_shot", one_each(3)), "ranks 0 and 1 end with other bits");
  EXPECT_EQ(fault_of("recursive_doubling", one_each(2)), "ranks 0 and 1 end with other bits");
}

// Inserts a step in which a rank rounds one cell.
Schedule with_rounding(Schedule schedule, const Move& after, int chunk) {
  ++schedule.steps;
  for (Move& move : schedule.moves) {
    move.step += move.step > after.step ? 1 : 0;
  }
  schedule.moves.push_back({.step = after.step + 1,
                            .from = after.to,
                            .to = after.to,
                            .chunk = chunk,
                            .source = after.target,
                            .target = after.target,
                            .code = MoveCode::i8});
  std::stable_sort(schedule.moves.begin(), schedule.moves.end(),
                   [](const Move& a, const Move& b) { return a.step < b.step; });
  return schedule;
}

// Returns true if the move wrote an intermediate sum that contains encoded parts.
bool is_rounded_part(const Schedule& schedule, const Move& after, int chunk) {
  const auto adds = [&](const Move& move) {
    return move.to == after.to && move.target == after.target && move.chunk <= chunk &&
           chunk < move.chunk + move.chunks && move.combine == Combine::reduce;
  };
  const bool goes_on =
      std::any_of(schedule.moves.begin(), schedule.moves.end(),
                  [&](const Move& move) { return move.step > after.step && adds(move); });
  return goes_on && adds(after) && after.code != MoveCode::none;
}

TEST(EncodedMoves, EveryFurtherRoundingIsFound) {
  int rounded_parts = 0;
  int harmless = 0;
  for (const Hosts& hosts : {one_each(3), one_each(6), some_each(4, 2)}) {
    const Schedule encoded = encode_moves(two_shot_between(hosts), hosts, MoveCode::i8);
    for (const Move& after : encoded.moves) {
      for (int chunk = after.chunk; chunk < after.chunk + after.chunks; ++chunk) {
        const Schedule mutant = with_rounding(encoded, after, chunk);
        ASSERT_EQ(verify(mutant).size(), 0U);
        if (is_rounded_part(encoded, after, chunk)) {
          ++rounded_parts;
          EXPECT_NE(first_fault(mutant), "") << after.step << " " << chunk;
        } else if (first_fault(mutant).empty()) {
          ++harmless;  // such as a rounding of what came encoded
        }
      }
    }
  }
  EXPECT_EQ(rounded_parts, 34);
  EXPECT_GT(harmless, 0);
}

TEST(EncodedMoves, AnOwnerWithoutItsOwnRoundingIsFound) {
  for (const Hosts& hosts : {one_each(2), one_each(8), some_each(3, 5)}) {
    const Schedule encoded = encode_moves(two_shot_between(hosts), hosts, MoveCode::i8);
    for (std::size_t i = 0; i < encoded.moves.size(); ++i) {
      if (encoded.moves[i].from == encoded.moves[i].to && encoded.moves[i].code != MoveCode::none) {
        Schedule mutant = encoded;
        mutant.moves.erase(mutant.moves.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(first_fault(mutant).find("other bits"), std::string::npos);
        mutant = encoded;
        mutant.moves[i].code = MoveCode::bf16;
        EXPECT_NE(first_fault(mutant), "");
      }
    }
  }
}

// Collectives that only move data, and sums for one rank.
constexpr Collective kOneWay[] = {
    Collective::broadcast,  Collective::reduce,         Collective::scatter,   Collective::gather,
    Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all};

TEST(EncodedMoves, FlatOnesOfEveryCollectiveRoundEachValueOnce) {
  for (const Collective collective : kOneWay) {
    for (const Hosts& hosts : kHosts) {
      const auto ranks = static_cast<int>(hosts.size());
      const Schedule encoded = encode_moves(
          build_schedule(*find_algorithm(collective, "flat"),
                         {.ranks = ranks, .root = is_rooted(collective) ? ranks - 1 : 0}),
          hosts, MoveCode::i8);
      EXPECT_EQ(verify(encoded).size(), 0U) << to_string(collective) << " " << ranks;
      EXPECT_EQ(verify_in_place(encoded).size(), 0U) << to_string(collective) << " " << ranks;
      EXPECT_EQ(first_fault(encoded), "") << to_string(collective) << " " << ranks;
    }
  }
}

// If data is only moved, the first move between hosts rounds it, and no other move does.
TEST(EncodedMoves, AllAlgorithmsThatOnlyMoveDataCanBeEncoded) {
  for (const Algorithm* algorithm : catalog()) {
    const Shape shape = complete(*algorithm, {.ranks = 8});
    if (reduces(algorithm->collective) || !moves_data(algorithm->collective) ||
        !can_serve(*algorithm, shape)) {
      continue;
    }
    for (const Hosts& hosts : {one_each(8), some_each(4, 2), Hosts{0, 0, 0, 1, 1, 2, 0, 2}}) {
      const Schedule encoded = encode_moves(build_schedule(*algorithm, shape), hosts, MoveCode::i8);
      EXPECT_EQ(verify(encoded).size(), 0U) << to_string(algorithm->collective);
      EXPECT_EQ(first_fault(encoded), "")
          << to_string(algorithm->collective) << "/" << algorithm->name;
    }
  }
}

TEST(EncodedMoves, OnlyWhereAllRanksGetItARankRoundsItsOwn) {
  for (const Collective collective : kOneWay) {
    const Schedule encoded =
        encode_moves(build_schedule(*find_algorithm(collective, "flat"), {.ranks = 4}), one_each(4),
                     MoveCode::i8);
    const bool rounds = std::any_of(
        encoded.moves.begin(), encoded.moves.end(),
        [](const Move& move) { return move.from == move.to && move.code != MoveCode::none; });
    EXPECT_EQ(rounds, collective == Collective::broadcast || collective == Collective::all_gather)
        << to_string(collective);
  }
}

TEST(EncodedMoves, ARankThatKeepsItsOwnAsItIsIsFound) {
  for (const Collective collective : {Collective::broadcast, Collective::all_gather}) {
    Schedule schedule = build_schedule(*find_algorithm(collective, "flat"), {.ranks = 3});
    for (Move& move : schedule.moves) {
      move.code = MoveCode::i8;
    }
    EXPECT_NE(first_fault(schedule).find("other bits"), std::string::npos) << to_string(collective);
  }
}

}  // namespace
}  // namespace unisono::algorithms
