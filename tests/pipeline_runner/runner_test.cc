// Training under a schedule gives the same weights as one process.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "model.h"
#include "pipeline/catalog.h"
#include "pipeline/run.h"
#include "pipeline_runner/schedule_state.h"
#include "ranks.h"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel {
namespace {

void on_ranks(int ranks, const testing::RankBody& body) {
  const std::vector<std::string> said = testing::as_threads(ranks, body);
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    EXPECT_EQ(said[rank], "") << "rank " << rank;
  }
}

using testing::Model;
using testing::ModelOnRank;

std::vector<int> layers_of(const PipelineSchedule& schedule) {
  std::vector<int> layers(static_cast<std::size_t>(schedule.stages()));
  for (const pipeline::Chain& chain : schedule.shared_state()->pipeline.chains) {
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      layers[static_cast<std::size_t>(chain.stages[i])] = static_cast<int>(i);
    }
  }
  return layers;
}

// Trains on as many threads as the schedule has ranks, and compares with one process.
void expect_same_weights(const PipelineSchedule& schedule, int steps, std::size_t wide = 1) {
  const std::vector<int> layers = layers_of(schedule);
  const int count = 1 + *std::max_element(layers.begin(), layers.end());
  Model alone(count, wide);
  for (int step = 0; step < steps; ++step) {
    alone.accumulate(schedule.microbatches(), step);
    alone.update();
  }
  std::mutex looking;
  on_ranks(schedule.ranks(), [&](Communicator& comm) {
    Model model(count, wide);
    ModelOnRank part(model, layers);
    Pipeline pipeline(comm, schedule, part.stages(schedule, comm.rank()), part.callbacks());
    for (; part.step < steps; ++part.step) {
      pipeline.run_step();
      testing::Words gradients = model.all_gradients();
      comm.all_reduce(gradients, sum);
      model.set_gradients(gradients);
      model.update();
    }
    const std::lock_guard lock(looking);
    EXPECT_TRUE(model == alone) << "rank " << comm.rank();
  });
}

TEST(PipelineRunner, EveryScheduleTrainsToTheWeightsOfOneProcess) {
  int tried = 0;
  for (const pipeline::Entry* entry : pipeline::catalog()) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const int microbatches : {1, 6, 8}) {
        const int chunks = entry->chunks == 0 ? 2 : entry->chunks;
        if (!refusal(*entry, {.ranks = ranks, .chunks = chunks, .microbatches = microbatches})
                 .empty()) {
          continue;
        }
        SCOPED_TRACE(std::string(entry->name) + " p=" + std::to_string(ranks) +
                     " m=" + std::to_string(microbatches));
        expect_same_weights(
            PipelineSchedule::by_name(entry->name, {.ranks = ranks, .microbatches = microbatches}),
            2);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 90);
}

// More than a lane of shared memory holds; and both directions in one lane, which then needs a
// larger capacity.
TEST(PipelineRunner, LongMessagesAndOneLaneAreNoTrouble) {
  for (const char* name : {"1f1b", "zbv", "dualpipe"}) {
    SCOPED_TRACE(name);
    const auto schedule = PipelineSchedule::by_name(name, {.ranks = 4, .microbatches = 8});
    expect_same_weights(schedule, 1, 16);
    std::string text = schedule.text();
    text.replace(text.find("\"lanes\": 2"), 10, "\"lanes\": 1");
    expect_same_weights(PipelineSchedule::parse(text), 1);
  }
}

// Two pipelines on groups of a world, each with its own data, whose stages reduce their gradients
// when the schedule requires it.
TEST(PipelineRunner, TwoPipelinesSideBySideReduceTheirGradients) {
  const auto schedule = PipelineSchedule::parse(
      "0F0,0F1,0B0,0F2,0B1,0B2,0REDUCE_GRAD\n1F0,1B0,1F1,1B1,1F2,1B2,1REDUCE_GRAD");
  Model alone(2);
  alone.accumulate(3, 0);
  alone.accumulate(3, 1);
  on_ranks(4, [&](Communicator& comm) {
    Communicator pipe = comm.split(comm.rank() / 2, comm.rank());
    Communicator data = comm.split(comm.rank() % 2, comm.rank());
    Model model(2);
    ModelOnRank part(model, {0, 1});
    part.step = comm.rank() / 2;
    PipelineCallbacks callbacks = part.callbacks();
    int reduced = 0;
    callbacks.reduce_grad = [&](int stage) {
      EXPECT_EQ(stage, pipe.rank());
      data.all_reduce(model.layer(stage).gradient, sum);
      ++reduced;
    };
    Pipeline pipeline(pipe, schedule, part.stages(schedule, pipe.rank()), callbacks);
    pipeline.run_step();
    EXPECT_EQ(reduced, 1);
    EXPECT_EQ(model.layer(pipe.rank()).gradient, alone.layer(pipe.rank()).gradient);
  });
}

// The parts of an overlap may run at the same time.
TEST(PipelineRunner, PartsOfAnOverlapAreGivenTogether) {
  const auto schedule = PipelineSchedule::by_name("dualpipev", {.ranks = 2, .microbatches = 6});
  const std::vector<int> layers = layers_of(schedule);
  Model alone(4);
  alone.accumulate(6, 0);
  on_ranks(2, [&](Communicator& comm) {
    Model model(4);
    ModelOnRank part(model, layers);
    PipelineCallbacks callbacks = part.callbacks();
    int overlaps = 0;
    callbacks.overlap = [&](std::span<const std::function<void()>> parts) {
      EXPECT_EQ(parts.size(), 2U);
      ++overlaps;
      std::thread other(parts[1]);
      other.join();
      parts[0]();
    };
    Pipeline pipeline(comm, schedule, part.stages(schedule, comm.rank()), callbacks);
    pipeline.run_step();
    EXPECT_GT(overlaps, 2);
    for (const int stage : schedule.stages_of(comm.rank())) {
      EXPECT_EQ(model.layer(stage).gradient, alone.layer(stage).gradient) << stage;
    }
  });
}

// Sends this many bytes at each boundary; the callbacks only stamp them.
void expect_to_arrive_whole(std::size_t length) {
  const auto schedule = PipelineSchedule::by_name("zb-h1", {.ranks = 3, .microbatches = 5});
  on_ranks(3, [&](Communicator& comm) {
    const TensorSpec spec{.dtype = Dtype::u8, .shape = {length}};
    const auto stamp = [](int stage, int microbatch) {
      return static_cast<std::byte>(stage * 16 + microbatch);
    };
    const auto expect_all = [&](std::span<const std::byte> bytes, std::byte value) {
      EXPECT_TRUE(bytes.empty() ||
                  (bytes.size() == length &&
                   std::all_of(bytes.begin(), bytes.end(), [&](auto b) { return b == value; })));
    };
    const PipelineCallbacks callbacks{
        .forward =
            [&](const PipelinePass& pass) {
              expect_all(pass.input, stamp(pass.stage - 1, pass.microbatch));
              std::fill(pass.output.begin(), pass.output.end(), stamp(pass.stage, pass.microbatch));
            },
        .backward_input =
            [&](const PipelinePass& pass) {
              expect_all(pass.output_gradient, stamp(pass.stage + 9, pass.microbatch));
              std::fill(pass.input_gradient.begin(), pass.input_gradient.end(),
                        stamp(pass.stage + 8, pass.microbatch));
            },
        .backward_weight =
            [&](const PipelinePass& pass) {
              expect_all(pass.input, stamp(pass.stage - 1, pass.microbatch));
              expect_all(pass.output_gradient, stamp(pass.stage + 9, pass.microbatch));
            }};
    PipelineStage stage{.stage = comm.rank()};
    if (comm.rank() < 2) {
      stage.output = spec;
    }
    Pipeline pipeline(comm, schedule, {stage}, callbacks);
    pipeline.run_step();
    pipeline.run_step();
    EXPECT_GE(pipeline.most_bytes_held(), length);
    EXPECT_LE(pipeline.most_bytes_held(), 12 * length);
  });
}

TEST(PipelineRunner, MessagesOfAnyLengthArriveWhole) {
  for (const std::size_t length : std::vector<std::size_t>{0, 1, 4097, 1'000'003}) {
    SCOPED_TRACE(length);
    expect_to_arrive_whole(length);
  }
}

// Sleeping stages: the step takes the time that the player predicts.
TEST(PipelineRunner, AStepTakesWhatIsPredicted) {
  using std::chrono::milliseconds;
  constexpr auto kStage = milliseconds(5);
  for (const char* name : {"1f1b", "zb-h1"}) {
    const auto schedule = PipelineSchedule::by_name(name, {.ranks = 4, .microbatches = 8});
    const double predicted_us =
        pipeline::run(schedule.shared_state()->pipeline).makespan * 1000 * kStage.count();
    double best = 0;
    std::string json;
    on_ranks(4, [&](Communicator& comm) {
      const auto sleep = [&](const PipelinePass&) { std::this_thread::sleep_for(kStage); };
      const PipelineCallbacks callbacks{
          .forward = sleep,
          .backward = [&](const PipelinePass&) { std::this_thread::sleep_for(2 * kStage); },
          .backward_input = sleep,
          .backward_weight = sleep};
      PipelineStage stage{.stage = comm.rank()};
      if (comm.rank() < 3) {
        stage.output = TensorSpec{.dtype = Dtype::f32, .shape = {64, 64}};
      }
      Pipeline pipeline(comm, schedule, {stage}, callbacks, {.record = true});
      // All ranks get the same times.
      double quickest = 0;
      for (int step = 0; step < 5; ++step) {
        pipeline.run_step();
        std::vector<double> last = {0};
        for (const ActionTime& time : pipeline.times()) {
          EXPECT_GE(time.start_us, 0) << time.action;
          EXPECT_GE(time.end_us, time.start_us) << time.action;
          if (time.action.find('_') == std::string::npos) {
            last[0] = std::max(last[0], time.end_us);
          }
        }
        comm.all_reduce(last, max);
        quickest = quickest == 0 ? last[0] : std::min(quickest, last[0]);
      }
      const std::string text = pipeline.times_json();
      if (comm.rank() == 0) {
        json = text;
        best = quickest;
      }
    });
    EXPECT_GE(best, predicted_us * 0.999) << name;
    // The excess is a recorded property and not a bound, because a busy machine would fail. It is
    // about 2 % on a quiet one.
    ::testing::Test::RecordProperty(std::string(name) + "_percent_over_prediction",
                                    std::to_string(100 * (best / predicted_us - 1)));
    EXPECT_NE(json.find("\"predicted_makespan\""), std::string::npos);
    EXPECT_NE(json.find("{\"action\": \"0RECV_B0\", \"start\": "), std::string::npos);
    EXPECT_NE(json.find("\"pipeline\": {\"format\": \"unisono.pipeline/1\""), std::string::npos);
  }
}

}  // namespace
}  // namespace unisono::parallel
