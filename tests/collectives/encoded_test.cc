// all_reduce with a max_error, over real connections: the error, the same bits on all ranks, and
// refused calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "encoded_ranks.h"
#include "unisono/error.hpp"
#include "unisono/team.hpp"

namespace unisono::testing {
namespace {

const Hosts kHosts[] = {{0},          {0, 1},       {0, 1, 2},          one_each(8),
                        {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 0, 1, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3}};

Call sum_of(const Floats& in, Floats& out, double max_error) {
  return {.collective = Collective::all_reduce,
          .in = in.data(),
          .out = out.data(),
          .count = in.size(),
          .dtype = Dtype::f32,
          .max_error = max_error};
}

// Returns the root mean square of the error divided by that of the result; for normal numbers.
double error_of(const std::string& bytes, int ranks, double factor = 1) {
  Floats result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  std::vector<double> exact(result.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const Floats input = draw(rank, result.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      exact[i] += factor * input[i];
    }
  }
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    errors += (result[i] - exact[i]) * (result[i] - exact[i]);
    squares += exact[i] * exact[i];
  }
  return std::sqrt(errors / squares);
}

TEST(Encoded, ErrorsAreWithinTheMaxErrorAndAllRanksHaveTheSameBits) {
  for (const Hosts& hosts : kHosts) {
    const auto ranks = static_cast<int>(hosts.size());
    const bool several = *std::max_element(hosts.begin(), hosts.end()) > 0;
    for (const double max_error : {1e-2, 4e-3}) {
      const auto results = on_hosts(hosts, [&](Communicator& comm) {
        const Floats in = draw(comm.rank(), 100'003);
        Floats out(in.size());
        comm.run(sum_of(in, out, max_error));
        return bytes_of(out);
      });
      const std::string what = std::to_string(ranks) + " ranks, " + std::to_string(max_error);
      expect_same(results, what);
      const double error = error_of(results.front(), ranks);
      EXPECT_LE(error, max_error) << what;
      EXPECT_EQ(error > 1e-3, several) << what;  // encoded if and only if several hosts
    }
  }
}

TEST(Encoded, ErrorTableOfEightHosts) {
  for (const auto& [wanted, error] : {std::pair(1e-2, 0.0074), std::pair(4e-3, 0.0023)}) {
    const auto results = on_hosts(one_each(8), [max_error = wanted](Communicator& comm) {
      Floats data = draw(comm.rank(), 200'000);
      comm.run(sum_of(data, data, max_error));
      return bytes_of(data);
    });
    EXPECT_NEAR(error_of(results.front(), 8), error, 0.0002) << wanted;
  }
}

// In place or not, short and empty vectors; sums, averages and multiples.
TEST(Encoded, AnyCountAndEverySum) {
  for (const Hosts& hosts : {Hosts{0, 1}, Hosts{0, 1, 2}, Hosts{0, 0, 1, 1}}) {
    const auto ranks = static_cast<int>(hosts.size());
    for (const std::size_t count : {0U, 1U, 2U, 3U, 31U, 97U, 1023U, 5000U, 70'001U}) {
      const auto results = on_hosts(hosts, [&](Communicator& comm) {
        const Floats in = draw(comm.rank(), count);
        Floats out(count);
        Floats both = in;
        std::string bytes;
        const auto expect_both = [&](Call call) {
          comm.run(call);
          both = in;
          call.in = call.out = both.data();
          comm.run_async(call).wait();
          bytes += bytes_of(out);
          return bytes_of(both) == bytes_of(out);
        };
        Call call = sum_of(in, out, 1e-2);
        bool same = expect_both(call);
        call.reduction = avg;
        same = expect_both(call) && same;
        call.reduction = Reduction::premul_sum(0.5);
        same = expect_both(call) && same;
        return same ? bytes : "in place has other bits";
      });
      expect_same(results, std::to_string(count));
      ASSERT_EQ(results.front().size(), 3 * count * sizeof(float));
      if (count >= 1023) {
        const std::size_t each = count * sizeof(float);
        EXPECT_LE(error_of(results.front().substr(0, each), ranks), 1e-2);
        EXPECT_LE(error_of(results.front().substr(each, each), ranks, 1.0 / ranks), 1e-2);
        EXPECT_LE(error_of(results.front().substr(2 * each), ranks, 0.5), 1e-2);
      }
    }
  }
}

TEST(Encoded, HelperThreadsGroupsAndPlansGiveTheSameBits) {
  const auto of = [](int threads) {
    ConnectOptions options;
    options.threads = threads;
    return on_hosts(
        {0, 1, 2},
        [](Communicator& comm) {
          const Floats in = draw(comm.rank(), 50'000);
          const Floats other = draw(comm.rank() + 10, 700);
          Floats first(in.size());
          Floats second(other.size());
          comm.run(sum_of(in, first, 1e-2));
          comm.run(sum_of(other, second, 1e-2));
          Floats grouped(in.size());
          Floats grouped_other(other.size());
          std::vector<Request> requests;
          comm.group([&] {
            requests.push_back(comm.run_async(sum_of(other, grouped_other, 1e-2)));
            requests.push_back(comm.run_async(sum_of(in, grouped, 1e-2)));
          });
          const bool same = grouped == first && grouped_other == second;
          return same ? bytes_of(first) + bytes_of(second) : "a group has other bits";
        },
        options);
  };
  const auto plain = of(1);
  expect_same(plain, "1 thread");
  EXPECT_EQ(plain.front().size(), 50'700 * sizeof(float));
  EXPECT_TRUE(of(2) == plain);
}

TEST(Encoded, InfinitiesAndNanComeOutAsNanOfTheirBlocks) {
  const auto results = on_hosts({0, 1}, [](Communicator& comm) {
    Floats data(200, 1.0F);
    data[3] = comm.rank() == 0 ? INFINITY : 1.0F;
    comm.run(sum_of(data, data, 1e-2));
    for (std::size_t i = 0; i < data.size(); ++i) {
      const bool in_block = i < 32;
      if (std::isnan(data[i]) != in_block && !(in_block && std::isinf(data[i]))) {
        return "element " + std::to_string(i);
      }
    }
    return std::string();
  });
  expect_same(results, "infinity");
  EXPECT_EQ(results.front(), "");
}

TEST(Encoded, RefusesWhatCannotHold) {
  const auto results = on_hosts({0, 1, 2}, [](Communicator& comm) {
    Floats data(100);
    std::string said;
    const auto add = [&](const Call& call) {
      const std::string text = refusal(comm, call);
      said += text.substr(text.find(": ", text.find(" on rank ")) + 2) + "\n";
    };
    Call call = sum_of(data, data, 1e-2);
    call.algorithm = "ring";
    add(call);
    call.algorithm = "one_shot";
    add(call);
    call.algorithm = "reproducible";
    add(call);
    call.algorithm = {};
    for (const double max_error : {1e-3, -2.0, std::nan("")}) {
      call.max_error = max_error;
      add(call);
    }
    call.max_error = 1e-2;
    call.reduction = max;
    add(call);
    call.reduction = sum;
    call.dtype = Dtype::f64;
    add(call);
    call.dtype = Dtype::f32;
    call.collective = Collective::barrier;
    add(call);
    return said;
  });
  expect_same(results, "refusals");
  EXPECT_EQ(
      results.front(),
      "ring cannot be encoded between hosts: an input is rounded twice on its way from rank 2 "
      "to rank 0 in step 2\n"
      "one_shot cannot be encoded between hosts: ranks 0 and 1 end with other bits\n"
      "a reproducible result cannot be encoded, because its bits must not depend on the hosts\n"
      "max_error 0.001 is below the error of the most precise code, which is 0.003\n"
      "max_error -2 is not a valid error bound\n"
      "max_error nan is not a valid error bound\n"
      "max_error 0.01 is not supported for max: only sums are encoded\n"
      "max_error 0.01 is not supported for f64: only f32 is encoded\n"
      "max_error 0.01 is not supported for barrier\n");
}

TEST(Encoded, RanksThatDisagreeAreTold) {
  const auto results = on_hosts({0, 1}, [](Communicator& comm) {
    Floats data(100'000, 1.0F);
    const std::string text = refusal(comm, sum_of(data, data, comm.rank() == 0 ? 1e-2 : 0));
    return text.find("two_shot+i8") != std::string::npos ? "" : text;
  });
  EXPECT_EQ(results, std::vector<std::string>(2));
}

Call sum_of(const Floats& in, Floats& out) {
  return sum_of(in, out, kInheritedMaxError);
}

TEST(Encoded, CallsInheritTheMaxErrorOfTheirCommunicatorAndMaySayAnother) {
  const auto results = on_hosts(
      {0, 1, 2},
      [](Communicator& comm) {
        const Floats in = draw(comm.rank(), 10'000);
        Floats out(in.size());
        std::string bytes;
        for (const Call& call : {sum_of(in, out), sum_of(in, out, 4e-3), sum_of(in, out, 0)}) {
          comm.run(call);
          bytes += bytes_of(out);
        }
        Communicator group = comm.split(0, 0);
        Floats of_group(in.size());
        group.run(sum_of(in, of_group));
        return bytes.starts_with(bytes_of(of_group)) ? bytes : "a group has another max_error";
      },
      that_ask(1e-2));
  expect_same(results, "inherited");
  const std::size_t each = 10'000 * sizeof(float);
  ASSERT_EQ(results.front().size(), 3 * each);
  EXPECT_NEAR(error_of(results.front().substr(0, each), 3), 0.0073, 0.0005);
  EXPECT_NEAR(error_of(results.front().substr(each, each), 3), 0.0023, 0.0005);
  EXPECT_LT(error_of(results.front().substr(2 * each), 3), 1e-6);
}

// The communicator's default is ignored if a call cannot meet it.
TEST(Encoded, CallsThatCannotKeepToTheMaxErrorOfTheirCommunicatorStayExact) {
  const auto results = on_hosts(
      {0, 1, 2},
      [](Communicator& comm) {
        constexpr std::size_t kCount = 5000;
        std::vector<std::byte> in(kCount * sizeof(double));
        std::vector<std::byte> out(in.size());
        Call call{.collective = Collective::all_reduce,
                  .in = in.data(),
                  .out = out.data(),
                  .count = kCount,
                  .dtype = Dtype::f32};
        std::string names;
        const auto add = [&](const Call& one) {
          comm.run(one);
          names += comm.explain(one).chosen.find('+') == std::string::npos ? "exact " : "encoded ";
        };
        add(call);
        call.reduction = avg;
        add(call);
        call.reduction = max;
        add(call);
        call.reduction = sum;
        for (const char* algorithm : {"ring", "one_shot", "reproducible", "flat"}) {
          call.algorithm = algorithm;
          add(call);
        }
        call.algorithm = {};
        for (const Dtype dtype : {Dtype::f64, Dtype::i32, Dtype::bf16}) {
          call.dtype = dtype;
          add(call);
        }
        call.dtype = Dtype::f32;
        for (const std::size_t count : {4096U, 4095U}) {
          call.count = count;
          add(call);
        }
        return names;
      },
      that_ask(1e-2));
  expect_same(results, "exact ones");
  EXPECT_EQ(results.front(),
            "encoded encoded exact "      // sum, avg, max
            "exact exact exact encoded "  // of these algorithms, only flat can be encoded
            "exact exact exact "          // only f32
            "encoded exact ");            // from 16 KiB on
}

// Slices of a long call that helper threads move must not query the communicator again.
TEST(Encoded, AReproducibleSumStaysExactWhereHelpersMoveIt) {
  ConnectOptions options = that_ask(1e-2, "all_reduce=reproducible");
  const auto sum_with = [&](double max_error, int threads) {
    options.max_error = max_error;
    options.threads = threads;
    return on_hosts(
        {0, 1, 2},
        [](Communicator& comm) {
          const Floats in = draw(comm.rank(), 50'000);
          Floats out(in.size());
          comm.run(sum_of(in, out));
          return bytes_of(out);
        },
        options);
  };
  EXPECT_TRUE(sum_with(1e-2, 2) == sum_with(0, 1));
}

TEST(Encoded, AForcedAlgorithmIsKeptWhereItCannotBeEncoded) {
  const auto results = on_hosts(
      {0, 1, 2},
      [](Communicator& comm) {
        Floats data(100);
        return comm.explain(sum_of(data, data)).chosen + " " + refusal(comm, sum_of(data, data, 1));
      },
      that_ask(1e-2, "all_reduce=ring"));
  EXPECT_EQ(results.front().substr(0, 5), "ring ");
  EXPECT_NE(results.front().find("ring cannot be encoded between hosts"), std::string::npos);
}

TEST(Encoded, TeamsStayExact) {
  const auto results = on_hosts(
      {0, 1},
      [](Communicator& comm) {
        const Floats in = draw(comm.rank(), 100'000);  // long enough to encode
        Floats out(in.size());
        Team team(comm, 1);
        team.run(0, sum_of(in, out));
        return bytes_of(out);
      },
      that_ask(1e-2));
  expect_same(results, "teams");
  EXPECT_LT(error_of(results.front(), 2), 1e-6);
}

TEST(Encoded, ExactCallsThatBecomeOneStayExact) {
  const auto results = on_hosts(
      {0, 1},
      [](Communicator& comm) {
        const Floats in = draw(comm.rank(), 3000);
        Floats first(in.size());
        Floats second(in.size());
        std::vector<Request> requests;
        comm.group([&] {
          requests.push_back(comm.run_async(sum_of(in, first, 0)));
          requests.push_back(comm.run_async(sum_of(in, second, 0)));
        });
        return first == second ? bytes_of(first) : "they differ";
      },
      that_ask(1e-2));
  expect_same(results, "a group");
  EXPECT_LT(error_of(results.front(), 2), 1e-6);
}

// Returns each rank's error: rank 0 has the max_error `first`, the others 0.01.
std::vector<std::string> with_other_max_errors(const Hosts& hosts, double first) {
  const std::string job = comm::testing::unique_name("max_errors");
  const auto ranks = static_cast<int>(hosts.size());
  return comm::testing::as_threads(ranks, [&](int rank) -> std::string {
    ConnectOptions options = test_options(rank, ranks, job);
    options.max_error = rank == 0 ? first : 1e-2;
    if (hosts.back() > 0) {
      options.address = comm::testing::loopback_address(job);
      options.token = comm::testing::kToken;
      options.host = "host-" + std::to_string(hosts[static_cast<std::size_t>(rank)]);
    }
    try {
      Communicator communicator = Communicator::connect(options);
      Floats data(100'000, 1.0F);
      communicator.run(sum_of(data, data));
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  });
}

TEST(Encoded, RanksWithOtherMaxErrorsAreToldByTheirFirstCall) {
  for (const double first : {0.0, 4e-3}) {
    for (const std::string& text : with_other_max_errors({0, 1}, first)) {
      EXPECT_NE(text.find("two_shot+i8"), std::string::npos) << text;
      EXPECT_NE(text.find("compare their UNISONO_MAX_ERROR"), std::string::npos) << text;
    }
  }
}

TEST(Encoded, RanksOfOneHostWithOtherMaxErrorsAreToldWhenTheyMeet) {
  const std::vector<std::string> told = with_other_max_errors({0, 0}, 4e-3);
  EXPECT_NE(told[0].find("UNISONO_MAX_ERROR is 0.004 on rank 0 and 0.01 on rank 1"),
            std::string::npos)
      << told[0];
}

TEST(Encoded, IsExplained) {
  const auto results = on_hosts({0, 1, 2, 3}, [](Communicator& comm) {
    Floats data(64 << 10);
    const Explanation all = comm.explain(sum_of(data, data, 1e-2));
    const auto chosen = std::find_if(all.candidates.begin(), all.candidates.end(),
                                     [](const auto& one) { return one.chosen; });
    return all.chosen + " " + std::string(to_string(all.why)) + " " +
           std::to_string(static_cast<int>(chosen->sent_bytes)) +
           (all.text().find("round each input and the result at most once") != std::string::npos
                ? ""
                : all.text());
  });
  expect_same(results, "explanations");
  EXPECT_EQ(results.front(), "two_shot+i8 max_error 104448");  // 6/4 of 64 Ki of 34/32 bytes
}

TEST(Encoded, NamedAlgorithmsAreEncodedWhereTheProofHolds) {
  const auto results = on_hosts({0, 0, 1, 1}, [](Communicator& comm) {
    const Floats in = draw(comm.rank(), 10'000);
    Floats out(in.size());
    Call call = sum_of(in, out, 1e-2);
    call.algorithm = "hierarchical:local=2";
    comm.run(call);
    return bytes_of(out);
  });
  expect_same(results, "hierarchical");
  EXPECT_LE(error_of(results.front(), 4), 1e-2);
  EXPECT_GE(error_of(results.front(), 4), 1e-3);
}

}  // namespace
}  // namespace unisono::testing
