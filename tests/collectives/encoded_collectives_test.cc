// Collectives of f32 with a max_error, over real connections: each value is rounded once, and
// results for all ranks have the same bits everywhere.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "encoded_ranks.h"

namespace unisono::testing {
namespace {

struct Case {
  Collective collective = Collective::broadcast;
  Hosts hosts;
  std::size_t count = 0;
  int root = 0;
  double max_error = 1e-2;
  const char* algorithm = "";

  std::size_t ranks() const { return hosts.size(); }
  bool far(std::size_t a, std::size_t b) const { return hosts[a] != hosts[b]; }
  bool somebody_is_far(std::size_t from) const {
    return std::any_of(hosts.begin(), hosts.end(), [&](int host) { return host != hosts[from]; });
  }
  std::string text() const {
    return std::string(to_string(collective)) + "/" + algorithm + " of " + std::to_string(ranks()) +
           " ranks, " + std::to_string(count) + " elements, root " + std::to_string(root);
  }
};

constexpr Collective kOthers[] = {
    Collective::broadcast,  Collective::reduce,         Collective::scatter,   Collective::gather,
    Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all};

// Returns the number of elements of the longest buffer of any rank.
std::size_t longest(const Case& one) {
  const bool whole =
      one.collective == Collective::broadcast || one.collective == Collective::reduce;
  return whole ? one.count : one.count * one.ranks();
}

// Computes the codes element by element, from their definition (base/move_code.h).
std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

float bf16(float value) {
  return std::bit_cast<float>(std::uint32_t{bf16_bits(value)} << 16U);
}

Floats rounded(double max_error, Floats values) {
  for (std::size_t first = 0; first < values.size(); first += 32) {
    const std::size_t end = std::min(values.size(), first + 32);
    float greatest = 0;
    for (std::size_t i = first; i < end; ++i) {
      greatest = std::max(greatest, std::fabs(values[i]));
    }
    const float scale = bf16(greatest / 127);
    for (std::size_t i = first; i < end; ++i) {
      values[i] = max_error < 8e-3 ? bf16(values[i])
                                   : (std::nearbyint(values[i] * (1 / scale)) + 0.0F) * scale;
    }
  }
  return values;
}

// Returns part `part` of the input of rank `from`; all of it if the collective has no parts.
Floats given(const Case& one, std::size_t from, std::size_t part) {
  const Floats all = draw(static_cast<int>(from), longest(one));
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(part * one.count);
  return {first, first + static_cast<std::ptrdiff_t>(one.count)};
}

// Returns the value as received by rank `to`.
Floats arrived(const Case& one, std::size_t from, std::size_t part, bool encoded) {
  return encoded ? rounded(one.max_error, given(one, from, part)) : given(one, from, part);
}

void append(Floats& all, const Floats& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// In rank order.
Floats sum_at(const Case& one, std::size_t rank, std::size_t part) {
  Floats sum;
  for (std::size_t from = 0; from < one.ranks(); ++from) {
    const Floats term = arrived(one, from, part, one.far(from, rank));
    for (std::size_t i = 0; i < term.size(); ++i) {
      from == 0 ? sum.push_back(term[i]) : void(sum[i] += term[i]);
    }
  }
  return sum;
}

// Returns a rank's result if each value is sent directly to its destination.
Floats by_definition(const Case& one, std::size_t rank) {
  const auto root = static_cast<std::size_t>(one.root);
  Floats all;
  switch (one.collective) {
    case Collective::broadcast:
      return arrived(one, root, 0, one.somebody_is_far(root));
    case Collective::reduce:
      return rank == root ? sum_at(one, rank, 0) : Floats();
    case Collective::scatter:
      return arrived(one, root, rank, one.far(root, rank));
    case Collective::gather:
      for (std::size_t from = 0; rank == root && from < one.ranks(); ++from) {
        append(all, arrived(one, from, 0, one.far(from, rank)));
      }
      return all;
    case Collective::all_gather:
      for (std::size_t from = 0; from < one.ranks(); ++from) {
        append(all, arrived(one, from, 0, one.somebody_is_far(from)));
      }
      return all;
    case Collective::reduce_scatter:
      return sum_at(one, rank, rank);
    default:
      for (std::size_t from = 0; from < one.ranks(); ++from) {
        append(all, arrived(one, from, rank, one.far(from, rank)));
      }
      return all;
  }
}

// Returns the number of elements that a rank gets.
std::size_t output_of(const Case& one, int rank) {
  const bool nothing = rank != one.root && (one.collective == Collective::reduce ||
                                            one.collective == Collective::gather);
  const bool part =
      one.collective == Collective::scatter || one.collective == Collective::reduce_scatter;
  return nothing ? 0 : part ? one.count : longest(one);
}

std::string result_of(Communicator& comm, const Case& one) {
  const Floats in = draw(comm.rank(), longest(one));
  Floats out(longest(one), -1.0F);
  comm.run({.collective = one.collective,
            .in = in.data(),
            .out = out.data(),
            .count = one.count,
            .dtype = Dtype::f32,
            .root = one.root,
            .algorithm = one.algorithm,
            .max_error = one.max_error});
  const bool kept = in == draw(comm.rank(), longest(one));
  out.resize(output_of(one, comm.rank()));
  return kept ? bytes_of(out) : "the input has changed";
}

// Returns the results of many calls on the same connections.
std::vector<std::vector<std::string>> results_of(const std::vector<Case>& cases) {
  std::vector<std::vector<std::string>> results(cases.size(),
                                                std::vector<std::string>(cases[0].ranks()));
  const auto said = on_hosts(cases[0].hosts, [&](Communicator& comm) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      results[i][static_cast<std::size_t>(comm.rank())] = result_of(comm, cases[i]);
    }
    return std::string();
  });
  for (const std::string& text : said) {
    EXPECT_EQ(text, "");
  }
  return results;
}

std::vector<Case> cases_of(const Hosts& hosts, const char* algorithm) {
  std::vector<Case> cases;
  for (const Collective collective : kOthers) {
    for (const std::size_t count : {1U, 33U, 2000U}) {
      for (const double max_error : {1e-2, 4e-3}) {
        for (const int root : {0, static_cast<int>(hosts.size()) - 1}) {
          cases.push_back({.collective = collective,
                           .hosts = hosts,
                           .count = count,
                           .root = root,
                           .max_error = max_error,
                           .algorithm = algorithm});
        }
      }
    }
  }
  return cases;
}

const Hosts kHosts[] = {{0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 1, 0, 1, 2}};

TEST(EncodedCollectives, MakeWhatTheirDefinitionSays) {
  for (const Hosts& hosts : kHosts) {
    const std::vector<Case> cases = cases_of(hosts, "flat");
    const auto results = results_of(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (std::size_t rank = 0; rank < cases[i].ranks(); ++rank) {
        ASSERT_TRUE(results[i][rank] == bytes_of(by_definition(cases[i], rank)))
            << cases[i].text() << ", rank " << rank;
      }
    }
  }
}

// Returns the root mean square of the error divided by that of the exact result, over results for
// all ranks.
double error_of(const Case& one, const std::vector<std::string>& results) {
  Case exact = one;
  exact.hosts.assign(one.ranks(), 0);
  double errors = 0;
  double squares = 0;
  for (std::size_t rank = 0; rank < one.ranks(); ++rank) {
    const Floats wanted = by_definition(exact, rank);
    Floats got(wanted.size());
    EXPECT_EQ(results[rank].size(), wanted.size() * sizeof(float)) << one.text();
    if (!got.empty()) {
      std::memcpy(got.data(), results[rank].data(),
                  std::min(results[rank].size(), got.size() * sizeof(float)));
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      errors += std::pow(double{got[i]} - wanted[i], 2);
      squares += std::pow(wanted[i], 2);
    }
  }
  return std::sqrt(errors / squares);
}

TEST(EncodedCollectives, AreWithinTheMaxErrorByWhicheverAlgorithmIsFastest) {
  for (const Hosts& hosts : kHosts) {
    const std::vector<Case> cases = cases_of(hosts, "");
    const auto results = results_of(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].count > 1) {
        EXPECT_LE(error_of(cases[i], results[i]), cases[i].max_error) << cases[i].text();
        EXPECT_GT(error_of(cases[i], results[i]), 1e-4) << cases[i].text();
      }
      if (cases[i].collective == Collective::broadcast ||
          cases[i].collective == Collective::all_gather) {
        expect_same(results[i], cases[i].text());
      }
    }
  }
}

// The errors with eight hosts: each value that is only moved is rounded once; in a sum, all terms
// except the rank's own are rounded.
TEST(EncodedCollectives, ErrorTableOfEightHosts) {
  const std::map<Collective, std::pair<double, double>> table = {
      {Collective::broadcast, {0.0054, 0.0017}},      {Collective::all_gather, {0.0054, 0.0017}},
      {Collective::scatter, {0.0050, 0.0016}},        {Collective::gather, {0.0050, 0.0016}},
      {Collective::all_to_all, {0.0050, 0.0016}},     {Collective::reduce, {0.0050, 0.0016}},
      {Collective::reduce_scatter, {0.0050, 0.0016}},
  };
  std::vector<Case> cases;
  for (const auto& [collective, errors] : table) {
    for (const double max_error : {1e-2, 4e-3}) {
      cases.push_back({.collective = collective,
                       .hosts = one_each(8),
                       .count = 20'000,
                       .max_error = max_error,
                       .algorithm = "flat"});
    }
  }
  const auto results = results_of(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [i8, bf16_error] = table.at(cases[i].collective);
    EXPECT_NEAR(error_of(cases[i], results[i]), i % 2 == 0 ? i8 : bf16_error, 1e-4)
        << cases[i].text();
  }
}

// Returns the positions of a rank's input and output in one buffer, for an in-place call.
std::pair<std::size_t, std::size_t> places_of(const Case& one, int rank) {
  const std::size_t own = static_cast<std::size_t>(rank) * one.count;
  const bool is_root = rank == one.root;
  switch (one.collective) {
    case Collective::all_gather:
      return {own, 0};
    case Collective::reduce_scatter:
      return {0, own};
    case Collective::gather:
      return {is_root ? own : 0, 0};
    case Collective::scatter:
      return {0, is_root ? own : 0};
    default:
      return {0, 0};
  }
}

std::string result_in_place(Communicator& comm, const Case& one) {
  const bool gives_part =
      one.collective == Collective::all_gather || one.collective == Collective::gather;
  const Floats in = draw(comm.rank(), longest(one));
  const auto [in_offset, out_offset] = places_of(one, comm.rank());
  Floats data(longest(one));
  std::copy_n(in.begin(), gives_part ? one.count : longest(one),
              data.begin() + static_cast<std::ptrdiff_t>(in_offset));
  comm.run({.collective = one.collective,
            .in = data.data() + in_offset,
            .out = data.data() + out_offset,
            .count = one.count,
            .dtype = Dtype::f32,
            .root = one.root,
            .max_error = one.max_error});
  const auto first = data.begin() + static_cast<std::ptrdiff_t>(out_offset);
  const auto count = static_cast<std::ptrdiff_t>(output_of(one, comm.rank()));
  return bytes_of(Floats(first, first + count));
}

TEST(EncodedCollectives, InPlaceIsTheSame) {
  for (const Hosts& hosts : {Hosts{0, 1, 2}, Hosts{0, 0, 1, 1}}) {
    std::vector<Case> cases;
    for (const Collective collective : kOthers) {
      cases.push_back({.collective = collective, .hosts = hosts, .count = 1003, .root = 1});
    }
    const auto apart = results_of(cases);
    const auto together = on_hosts(hosts, [&](Communicator& comm) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (result_in_place(comm, cases[i]) != apart[i][static_cast<std::size_t>(comm.rank())]) {
          return cases[i].text();
        }
      }
      return std::string();
    });
    EXPECT_EQ(together, std::vector<std::string>(hosts.size()));
  }
}

TEST(EncodedCollectives, RanksOfACommunicatorThatBearsAnErrorMoveDataAsItIs) {
  const auto results = on_hosts(
      {0, 1, 2},
      [](Communicator& comm) {
        std::string names;
        for (const Collective collective : kOthers) {
          constexpr std::size_t kCount = 5000;
          Floats in(3 * kCount);
          Floats out(3 * kCount);
          const Call call{.collective = collective,
                          .in = in.data(),
                          .out = out.data(),
                          .count = kCount,
                          .dtype = Dtype::f32};
          const bool encoded = comm.explain(call).chosen.find("+i8") != std::string::npos;
          names += encoded ? std::string(to_string(collective)) + " " : "";
        }
        return names;
      },
      that_ask(1e-2));
  expect_same(results, "inherited");
  EXPECT_EQ(results.front(), "reduce reduce_scatter ");
}

TEST(EncodedCollectives, VFormsAreRefused) {
  const auto results = on_hosts({0, 1}, [](Communicator& comm) {
    Floats data(4);
    Floats out(8);
    const std::size_t counts[] = {4, 4};
    return refusal(comm, {.collective = Collective::all_gather_v,
                          .in = data.data(),
                          .out = out.data(),
                          .dtype = Dtype::f32,
                          .counts = counts,
                          .max_error = 1e-2});
  });
  EXPECT_NE(results.front().find("max_error 0.01 is not supported for all_gather_v"),
            std::string::npos)
      << results.front();
}

}  // namespace
}  // namespace unisono::testing
