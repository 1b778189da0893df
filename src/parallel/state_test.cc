// Tests sharded states and gradient buckets: their memory, and that every stage yields the weights
// of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "parallel/state_units.h"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/mesh.hpp"

namespace unisono::parallel {
namespace {

float gradient_of(std::size_t unit, std::size_t i, int rank, int step) {
  return static_cast<float>(
             static_cast<int>(unit * 31 + i * 7 + static_cast<std::size_t>(step)) % 11 - 5) *
         static_cast<float>(rank + 1) / 8;
}

// Runs AdamW on one rank in f64, from the formula, with the average of the gradients of `ranks`
// ranks.
std::vector<double> reference(std::size_t unit, int ranks, int steps, const AdamW& adam,
                              double max_norm) {
  std::vector<std::vector<double>> x, m, v;
  for (const auto& list : kUnits) {
    std::size_t count = 0;
    for (const Parameter& one : list) {
      count += one.count;
    }
    x.emplace_back(count, 0.5);
    m.emplace_back(count, 0.0);
    v.emplace_back(count, 0.0);
  }
  for (int step = 1; step <= steps; ++step) {
    const auto gradient = [&](std::size_t u, std::size_t i) {
      double all = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        all += gradient_of(u, i, rank, step);
      }
      return all / ranks;
    };
    double squares = 0;
    for (std::size_t u = 0; u < x.size(); ++u) {
      for (std::size_t i = 0; i < x[u].size(); ++i) {
        squares += gradient(u, i) * gradient(u, i);
      }
    }
    const double scale = std::min(1.0, max_norm / std::sqrt(squares));
    for (std::size_t u = 0; u < x.size(); ++u) {
      for (std::size_t i = 0; i < x[u].size(); ++i) {
        const double g = gradient(u, i) * scale;
        const bool decays = !(u == 0 && i < 5);
        m[u][i] = adam.beta1 * m[u][i] + (1 - adam.beta1) * g;
        v[u][i] = adam.beta2 * v[u][i] + (1 - adam.beta2) * g * g;
        x[u][i] -= (decays ? adam.rate * adam.decay * x[u][i] : 0) +
                   adam.rate * (m[u][i] / (1 - std::pow(adam.beta1, step))) /
                       (std::sqrt(v[u][i] / (1 - std::pow(adam.beta2, step))) + adam.epsilon);
      }
    }
  }
  return x[unit];
}

void train(ShardedState& state, int rank, int steps, bool prefetch) {
  for (int step = 1; step <= steps; ++step) {
    for (std::size_t unit = 0; unit < state.units(); ++unit) {
      if (prefetch && unit + 1 < state.units()) {
        state.prefetch(unit + 1);
      }
      ASSERT_EQ(state.parameters_f32(unit).size(), state.count(unit));
      state.release(unit);
    }
    for (std::size_t unit = state.units(); unit-- > 0;) {
      const std::span<float> gradients = state.gradients_f32(unit);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] += gradient_of(unit, i, rank, step);
      }
      state.gradients_ready(unit);
    }
    state.step();
  }
}

class Stages : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Of, Stages,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3),
                                            ::testing::Values(1, 2, 3, 4)));

TEST_P(Stages, UpdateAsOneRankDoes) {
  const auto [stage, ranks] = GetParam();
  const AdamW adam{.rate = 0.01, .decay = 0.1};
  run_threads(ranks, [&](Communicator& comm) {
    ShardedState state(comm, kUnits, {.stage = stage, .optimizer = adam, .max_norm = 3});
    for (std::size_t unit = 0; unit < state.units(); ++unit) {
      state.set(unit, std::vector<float>(state.count(unit), 0.5F));
    }
    train(state, comm.rank(), 4, comm.size() % 2 == 0);
    for (std::size_t unit = 0; unit < state.units(); ++unit) {
      const auto expected = reference(unit, comm.size(), 4, adam, 3);
      const std::vector<float> whole = state.whole(unit);
      const auto used = state.parameters_f32(unit);
      ASSERT_EQ(whole.size(), expected.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        ASSERT_NEAR(whole[i], expected[i], 2e-5) << "unit " << unit << " element " << i;
        ASSERT_EQ(whole[i], used[i]);
      }
    }
  });
}

TEST(ShardedState, HybridIsAsOneAxis) {
  const AdamW adam{.rate = 0.01};
  run_threads(4, [&](Communicator& comm) {
    Mesh mesh = Mesh::create(comm, "rep=2,dp=2");
    Communicator& axis = mesh.axis("dp");
    ShardedState state(
        axis, kUnits,
        {.stage = 3, .optimizer = adam, .max_norm = 3, .replicas = &mesh.axis("rep")});
    for (std::size_t unit = 0; unit < state.units(); ++unit) {
      state.set(unit, std::vector<float>(state.count(unit), 0.5F));
    }
    train(state, comm.rank(), 3, true);
    const auto expected = reference(3, 4, 3, adam, 3);
    const std::vector<float> whole = state.whole(3);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_NEAR(whole[i], expected[i], 2e-5);
    }
  });
}

TEST(ShardedState, HoldsWhatZeroStates) {
  constexpr std::size_t kCount = 840;  // divisible by 1 to 8, so that nothing is padded
  for (int n = 1; n <= 8; ++n) {
    run_threads(n, [&](Communicator& comm) {
      const auto ranks = static_cast<std::size_t>(n);
      const std::size_t expected[2][4] = {{16 * kCount, 8 * kCount + 8 * kCount / ranks,
                                           4 * kCount + 12 * kCount / ranks, 16 * kCount / ranks},
                                          {16 * kCount, 4 * kCount + 12 * kCount / ranks,
                                           2 * kCount + 14 * kCount / ranks, 16 * kCount / ranks}};
      for (const bool mixed : {false, true}) {
        for (int stage = 0; stage <= 3; ++stage) {
          ShardedState state(comm, {{{.name = "w", .count = kCount}}},
                             {.stage = stage, .dtype = mixed ? Dtype::bf16 : Dtype::f32});
          state.gradients(0);
          state.gradients_ready(0);
          state.wait_gradients();
          ASSERT_EQ(state.bytes_held().all(), expected[mixed ? 1 : 0][stage])
              << "stage " << stage << " on " << n << (mixed ? " mixed" : "");
          state.step();
        }
      }
    });
  }
}

std::string said(int ranks, const std::function<void(Communicator&)>& body, int of = 0) {
  std::vector<std::string> all(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const Error& error) {
      const std::string what = error.what();
      all[static_cast<std::size_t>(comm.rank())] = what.substr(0, what.find('\n'));
    }
  });
  return all[static_cast<std::size_t>(of)];
}

TEST(ShardedState, NamesWhatIsWrong) {
  EXPECT_EQ(said(1, [](Communicator& comm) { ShardedState(comm, kUnits, {.stage = 4}); }),
            "usage: sharded state: there is no stage 4");
  EXPECT_EQ(said(2,
                 [](Communicator& comm) {
                   ShardedState state(comm, {{{.name = "w", .count = 4}}}, {});
                   state.gradients_ready(0);
                   state.gradients_ready(0);
                 }),
            "usage: sharded state: the gradients of unit 0 (w, ...) are ready twice");
  const auto forgets = [](Communicator& comm) {
    ShardedState state(comm, {{{.name = "w", .count = 4}}, {{.name = "v", .count = 4}}}, {});
    state.gradients_ready(0);
    if (comm.rank() == 0) {
      state.gradients_ready(1);
    }
    state.step();
  };
  EXPECT_EQ(said(2, forgets, 1), "usage: sharded state: the gradients of v never became ready");
  EXPECT_NE(said(2, forgets, 0).find("the gradients of v never became ready"), std::string::npos);
}

TEST(GradientBuckets, AverageWhateverTheOrder) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_threads(ranks, [&](Communicator& comm) {
      GradientBuckets buckets(comm, {.first_bytes = 64, .bytes = 256});
      const std::vector<std::size_t> counts = {3, 0, 40, 100, 1, 7};
      for (std::size_t i = 0; i < counts.size(); ++i) {
        ASSERT_EQ(buckets.add("g" + std::to_string(i), counts[i]), i);
      }
      for (int step = 0; step < 3; ++step) {
        buckets.begin();
        for (std::size_t k = counts.size(); k-- > 0;) {
          const std::size_t i = (k + static_cast<std::size_t>(comm.rank() * step)) % counts.size();
          for (float& value : buckets.gradient(i)) {
            value += static_cast<float>(comm.rank() + step) + static_cast<float>(i);
          }
          buckets.ready(i);
        }
        buckets.finish();
        for (std::size_t i = 0; i < counts.size(); ++i) {
          const std::vector<float> mean(
              counts[i],
              static_cast<float>(ranks - 1) / 2 + static_cast<float>(step) + static_cast<float>(i));
          const std::span<const float> is = buckets.gradient(i);
          ASSERT_EQ(std::vector<float>(is.begin(), is.end()), mean);
        }
      }
    });
  }
}

TEST(GradientBuckets, HoldTheMeanAfterEachStep) {
  run_threads(3, [](Communicator& comm) {
    GradientBuckets buckets(comm, {.first_bytes = 16});
    buckets.add("first", 4);
    buckets.add("second", 5);
    for (int step = 0; step < 3; ++step) {
      buckets.begin(false);  // do not reduce: accumulate
      buckets.gradient(0)[0] = 9;
      for (const std::size_t i : {0U, 1U}) {
        buckets.ready(i);
      }
      buckets.finish();
      buckets.begin();
      ASSERT_EQ(buckets.gradient(0)[0], 9);
      const std::vector<bf16> half(5, to_bf16(static_cast<float>(comm.rank())));
      buckets.add_to(1, half);
      buckets.ready(1);
      buckets.ready(0);
      const std::span<float> first = buckets.gradient(0);
      const std::span<float> second = buckets.gradient(1);
      buckets.finish();
      ASSERT_EQ(first[0], 9);
      ASSERT_EQ(second[4], 1);
      ASSERT_GE(buckets.exposed_us(), 0);
    }
  });
}

// Gradients are overwritten in each step: values of the last step, and unwritten memory, do not
// count.
TEST(GradientBuckets, AreWrittenWholeWhereTheyAreNotZero) {
  run_threads(2, [](Communicator& comm) {
    GradientBuckets buckets(
        comm, {.first_bytes = 16, .bytes = 32, .allow_unused = true, .zeroed = false});
    const std::size_t written = buckets.add("written", 5);
    const std::size_t unused = buckets.add("unused", 7);
    for (int step = 1; step <= 3; ++step) {
      buckets.begin();
      const auto value = static_cast<float>(step * (comm.rank() + 1));
      std::ranges::fill(buckets.gradient(written), value);
      std::ranges::fill(buckets.gradient(unused), 9.0F);  // written, but never ready
      buckets.ready(written);
      buckets.finish();
      for (const float mean : buckets.gradient(written)) {
        EXPECT_EQ(mean, 1.5F * static_cast<float>(step));
      }
      for (const float mean : buckets.gradient(unused)) {
        EXPECT_EQ(mean, 0.0F);
      }
    }
    buckets.begin(false);  // kept, although the next step omits it
    std::ranges::fill(buckets.gradient(unused), 4.0F);
    buckets.ready(unused);
    buckets.finish();
    buckets.begin();
    std::ranges::fill(buckets.gradient(written), 1.0F);
    buckets.ready(written);
    buckets.finish();
    EXPECT_EQ(buckets.gradient(unused)[0], 4.0F);
    buckets.begin();
    const std::vector<bf16> more(5);
    EXPECT_THROW(buckets.add_to(written, more), Error);
    buckets.ready(written);
    buckets.ready(unused);
    buckets.finish();
  });
}

TEST(ShardedState, SumsF16InF32) {
  for (const int stage : {0, 1, 2, 3}) {
    run_threads(3, [&](Communicator& comm) {
      ShardedState state(comm, {{{.name = "w", .count = 4}}},
                         {.stage = stage, .dtype = Dtype::f16, .op = ReduceOp::sum});
      const std::vector<float> ones(4, 1.0F);
      state.set(0, ones);
      state.parameters(0);
      // In f32 1 + 2^-11 + 2^-11 is 1 + 2^-10; rounded at each step it would be 1.
      const float own = comm.rank() == 0 ? 1.0F : std::ldexp(1.0F, -11);
      const std::vector<f16> gradient(4, to_f16(own));
      const std::span<std::byte> target = state.gradients(0);
      ASSERT_EQ(target.size(), 8U);
      std::memcpy(target.data(), gradient.data(), 8);
      state.gradients_ready(0);
      EXPECT_EQ(state.step(), 2 * (1 + std::ldexp(1.0, -10)));
      for (const float value : state.whole(0)) {
        EXPECT_NEAR(value, 1 - 1e-3, 1e-6);
      }
      EXPECT_THROW(state.parameters_f32(0), Error);
    });
  }
  run_threads(1, [](Communicator& comm) {
    EXPECT_THROW(ShardedState(comm, {}, {.dtype = Dtype::f8e4m3}), Error);
  });
}

// No computation is left to hide the sum of the last bucket.
TEST(GradientBuckets, BecomeSmallerTowardsTheEnd) {
  run_threads(1, [](Communicator& comm) {
    GradientBuckets buckets(comm, {.first_bytes = 4000, .bytes = 100'000});
    for (int i = 0; i < 100; ++i) {
      buckets.add(std::to_string(i), 1000);
    }
    buckets.begin();
    for (std::size_t i = 0; i < 100; ++i) {
      buckets.ready(i);
    }
    buckets.finish();
    // The first bucket has 4 kB. Then come 100 kB each, while that is at most a third of the rest,
    // and then a third of the rest each.
    EXPECT_EQ(buckets.buckets(), 12U);
  });
}

TEST(GradientBuckets, NameWhatIsNotReadyOrTwice) {
  const auto of = [](bool allowed) {
    return [=](Communicator& comm) {
      GradientBuckets buckets(comm, {.allow_unused = allowed});
      buckets.add("used", 4);
      buckets.add("layer 3 bias", 4);
      buckets.begin();
      buckets.ready(0);
      if (comm.rank() == 0 && !allowed) {
        buckets.ready(1);
      }
      buckets.finish();
    };
  };
  EXPECT_EQ(said(2, of(false), 1),
            "usage: gradient buckets: the gradients of layer 3 bias never became ready");
  EXPECT_NE(said(2, of(false), 0).find("layer 3 bias never became ready"), std::string::npos);
  EXPECT_EQ(said(2, of(true), 0), "");
  EXPECT_EQ(said(1,
                 [](Communicator& comm) {
                   GradientBuckets buckets(comm);
                   buckets.add("w", 4);
                   buckets.begin();
                   buckets.ready(0);
                   buckets.ready(0);
                 }),
            "usage: gradient buckets: \"w\" is ready twice");
}

TEST(GradientBuckets, TellAllRanksOfOneThatIsReadyTwice) {
  const auto twice = [](Communicator& comm) {
    GradientBuckets buckets(comm);
    buckets.add("w", 4);
    buckets.add("v", 4);
    buckets.begin();
    buckets.ready(0);
    buckets.ready(comm.rank() == 1 ? 0 : 1);
    buckets.finish();
  };
  EXPECT_EQ(said(2, twice, 1), "usage: gradient buckets: \"w\" is ready twice");
  EXPECT_NE(said(2, twice, 0).find("rank 1: \"w\" is ready twice"), std::string::npos);
}

TEST(GradientBuckets, NameOnAllRanksAtTheTimeLimitWhatNeverBecomesReady) {
  const auto hangs = [](Communicator& comm) {
    GradientBuckets buckets(comm, {.timeout_ms = 500});
    buckets.add("layer 1", 4);
    buckets.add("layer 0", 4);
    for (int step = 0; step < 3; ++step) {
      buckets.begin();
      buckets.ready(0);
      while (comm.rank() == 1 && step == 2 && !comm.failure()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // computes forever
      }
      buckets.ready(1);
      buckets.finish();
    }
  };
  for (const int rank : {0, 1, 2}) {
    const std::string text = said(3, hangs, rank);
    EXPECT_NE(text.find("500 ms after the gradient of layer 1, layer 0 had not become ready"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace unisono::parallel
