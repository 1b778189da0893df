#include <gtest/gtest.h>

#include <csignal>
#include <mutex>

#include "ranks.h"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel {
namespace {

const TensorSpec kHidden{.dtype = Dtype::f32, .shape = {4, 8}};

PipelineCallbacks idle() {
  const auto nothing = [](const PipelinePass&) {};
  return {.forward = nothing,
          .backward = nothing,
          .backward_input = nothing,
          .backward_weight = nothing};
}

PipelineStage stage_of(int rank, int ranks) {
  PipelineStage stage{.stage = rank};
  if (rank + 1 < ranks) {
    stage.output = kHidden;
  }
  return stage;
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no: " << part;
}

TEST(PipelineErrors, SchedulesThatAreNotRightAreRefused) {
  const auto message = [](const std::function<void()>& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  expect_part(message([] { PipelineSchedule::by_name("zb-h3", {.ranks = 2}); }),
              "usage: there is no pipeline schedule 'zb-h3'\nthere are naive, gpipe");
  expect_part(message([] { PipelineSchedule::by_name("dualpipe", {.ranks = 3}); }), "usage: ");
  expect_part(message([] { PipelineSchedule::parse("0F0,0B0\n1F0,1X0"); }),
              "usage: this is not a pipeline schedule: line 2: cell 2: \"1X0\"");
  expect_part(message([] { PipelineSchedule::parse("0F0\n1F0,1B0"); }), "rank 0 never does 0B0");
}

TEST(PipelineErrors, ShapesThatDifferAreNamedOnAllRanks) {
  const auto schedule = PipelineSchedule::by_name("1f1b", {.ranks = 3, .microbatches = 4});
  for (const std::string& text : testing::as_processes(3, [&](Communicator& comm) {
         PipelineStage stage = stage_of(comm.rank(), 3);
         if (comm.rank() == 2) {
           stage.input = TensorSpec{.dtype = Dtype::f32, .shape = {4, 6}};
         }
         Pipeline(comm, schedule, {stage}, idle()).run_step();
       })) {
    EXPECT_EQ(text,
              "mismatch: pipeline: stage 1 on rank 1 gives f32[4, 8], but stage 2 on rank 2 takes "
              "f32[4, 6]\ngive both the same type and shape");
  }
}

TEST(PipelineErrors, WhatOneRankGetsWrongAllRanksHearOf) {
  const auto schedule = PipelineSchedule::by_name("zb-h1", {.ranks = 2, .microbatches = 4});
  std::vector<std::string> texts = testing::as_processes(2, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    if (comm.rank() == 1) {
      callbacks.backward_weight = nullptr;
    }
    Pipeline(comm, schedule, {stage_of(comm.rank(), 2)}, callbacks).run_step();
  });
  expect_part(texts[0], "mismatch: pipeline: rank 1 rejected its stages or callbacks");
  expect_part(texts[1],
              "usage: pipeline on rank 1: the schedule has 1W0, but there is no callback for W");
  texts = testing::as_processes(2, [&](Communicator& comm) {
    Pipeline(comm, schedule, {stage_of(0, 2)}, idle()).run_step();
  });
  expect_part(texts[1], "usage: pipeline on rank 1: stage 0 is on rank 0");
  texts = testing::as_processes(2, [&](Communicator& comm) {
    const auto mine = PipelineSchedule::by_name(comm.rank() == 0 ? "zb-h1" : "1f1b",
                                                {.ranks = 2, .microbatches = 4});
    Pipeline(comm, mine, {stage_of(comm.rank(), 2)}, idle()).run_step();
  });
  for (const std::string& text : texts) {
    expect_part(text, "mismatch: pipeline: the schedules of rank 0 and rank 1 differ");
  }
  texts = testing::as_processes(3, [&](Communicator& comm) {
    Pipeline(comm, schedule, {stage_of(comm.rank(), 3)}, idle()).run_step();
  });
  for (const std::string& text : texts) {
    expect_part(text, "the schedule has 2 ranks, the communicator 3");
  }
}

TEST(PipelineErrors, ACallbackThatThrowsEndsAllRanks) {
  const auto schedule = PipelineSchedule::by_name("1f1b", {.ranks = 3, .microbatches = 6});
  const std::vector<std::string> texts = testing::as_processes(3, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    callbacks.forward = [&](const PipelinePass& pass) {
      if (pass.stage == 1 && pass.microbatch == 2) {
        throw std::runtime_error("no memory for the attention");
      }
    };
    Pipeline(comm, schedule, {stage_of(comm.rank(), 3)}, callbacks).run_step();
  });
  EXPECT_EQ(texts[1], "no memory for the attention");
  for (const int other : {0, 2}) {
    expect_part(texts[static_cast<std::size_t>(other)], "aborted: ");
    expect_part(texts[static_cast<std::size_t>(other)],
                "rank 1 of the pipeline failed in 1F2: no memory for the attention");
  }
}

void die_in(const PipelinePass& pass, int stage, int microbatch) {
  if (pass.stage == stage && pass.microbatch == microbatch) {
    static_cast<void>(std::raise(SIGKILL));
  }
}

TEST(PipelineErrors, ARankThatIsKilledIsNamed) {
  const auto schedule = PipelineSchedule::by_name("gpipe", {.ranks = 3, .microbatches = 6});
  const std::vector<std::string> texts = testing::as_processes(3, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    callbacks.backward = [](const PipelinePass& pass) { die_in(pass, 1, 3); };
    Pipeline(comm, schedule, {stage_of(comm.rank(), 3)}, callbacks).run_step();
  });
  expect_part(texts[0], "peer_lost: pipeline: rank 0 waited for 0RECV_B");
  expect_part(texts[0], "rank 1 owes 1SEND_B");
}

// The end of the world may be known before the pipeline waits: here a callback detects it first,
// unless rank 1's data is lost with it.
TEST(PipelineErrors, ARankThatIsKilledIsNamedWhereAMessageBegins) {
  const auto schedule = PipelineSchedule::by_name("gpipe", {.ranks = 3, .microbatches = 6});
  const std::vector<std::string> texts = testing::as_processes(3, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    callbacks.backward = [&](const PipelinePass& pass) {
      die_in(pass, 1, 3);
      if (pass.stage == 0 && pass.microbatch == 0) {
        EXPECT_THROW(comm.barrier(), Error);
      }
    };
    Pipeline(comm, schedule, {stage_of(comm.rank(), 3)}, callbacks).run_step();
  });
  expect_part(texts[0], "peer_lost: pipeline: rank 0 waited for 0RECV_B");
  expect_part(texts[0], " rank 1 owes 1SEND_B");
}

// A step that fails at its end: the rank that the others wait for may continue then.
void run_and_tell(Pipeline& pipeline, const comm::testing::SharedEvent& said) {
  try {
    pipeline.run_step();
  } catch (...) {
    said.happen();
    throw;
  }
}

TEST(PipelineErrors, ATimeLimitNamesTheActionAndWhoOwesIt) {
  const auto schedule = PipelineSchedule::by_name("1f1b", {.ranks = 3, .microbatches = 4});
  const comm::testing::SharedEvent said;
  const std::vector<std::string> texts = testing::as_processes(3, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    callbacks.backward = [&](const PipelinePass& pass) {
      if (pass.stage == 2 && pass.microbatch == 1) {
        said.wait(2);
      }
    };
    Pipeline pipeline(comm, schedule, {stage_of(comm.rank(), 3)}, callbacks, {.timeout_ms = 2000});
    run_and_tell(pipeline, said);
  });
  expect_part(texts[0] + texts[1], "timeout: pipeline: rank ");
  expect_part(texts[1],
              "rank 1 waited for 1RECV_B1, which 1B1 (action 14) needs and rank 2 owes 2SEND_B1");
}

// A recorded step begins with a barrier, which the error names as well.
TEST(PipelineErrors, ARankThatDoesNotBeginARecordedStepIsNamed) {
  const auto schedule = PipelineSchedule::by_name("1f1b", {.ranks = 2, .microbatches = 4});
  const comm::testing::SharedEvent said;
  const std::vector<std::string> texts = testing::as_processes(2, [&](Communicator& comm) {
    Pipeline pipeline(comm, schedule, {stage_of(comm.rank(), 2)}, idle(),
                      {.timeout_ms = 500, .record = true});
    if (comm.rank() == 1) {
      said.wait();
    }
    run_and_tell(pipeline, said);
  });
  expect_part(
      texts[0],
      "timeout: pipeline: rank 0 waited for all ranks to begin the step, as it is recorded: "
      "barrier");
  expect_part(texts[0], "no data from rank 1");
}

TEST(PipelineErrors, ACallbackCannotBeginAnotherStep) {
  const auto schedule = PipelineSchedule::by_name("naive", {.ranks = 1, .microbatches = 1});
  run_threads(1, [&](Communicator& comm) {
    Pipeline* self = nullptr;
    std::string text;
    PipelineCallbacks callbacks = idle();
    callbacks.forward = [&](const PipelinePass&) {
      for (const auto& call : std::vector<std::function<void()>>{
               [&] { self->run_step(); }, [&] { static_cast<void>(self->times_json()); }}) {
        try {
          call();
        } catch (const Error& error) {
          text += error.what();
        }
      }
    };
    Pipeline pipeline(comm, schedule, {stage_of(0, 1)}, callbacks, {.record = true});
    self = &pipeline;
    pipeline.run_step();
    const std::string once =
        "usage: pipeline: a step is in progress\na callback cannot start another step, nor read "
        "the times of this one";
    EXPECT_EQ(text, once + once);
    pipeline.run_step();
  });
}

TEST(PipelineErrors, StagesAndRanksThatThereAreNotAreNamed) {
  const auto schedule = PipelineSchedule::by_name("1f1b", {.ranks = 2, .microbatches = 4});
  const auto message = [](const std::function<void()>& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(message([&] { static_cast<void>(schedule.rank_of(2)); }),
            "usage: the pipeline schedule has no stage 2\nit has 0 to 1");
  EXPECT_EQ(message([&] { static_cast<void>(schedule.stages_of(-1)); }),
            "usage: the pipeline schedule has no rank -1\nit has 0 to 1");
  EXPECT_EQ(message([&] { static_cast<void>(schedule.actions_of(7)); }),
            "usage: the pipeline schedule has no rank 7\nit has 0 to 1");
}

TEST(PipelineErrors, NoStepFollowsOneThatFailed) {
  const auto schedule = PipelineSchedule::by_name("naive", {.ranks = 1, .microbatches = 1});
  run_threads(1, [&](Communicator& comm) {
    PipelineCallbacks callbacks = idle();
    callbacks.forward = [](const PipelinePass&) { throw 7; };
    Pipeline pipeline(comm, schedule, {stage_of(0, 1)}, callbacks);
    EXPECT_THROW(pipeline.run_step(), int);
    EXPECT_THROW(pipeline.run_step(), Error);
    EXPECT_THROW(pipeline.times(), Error);
  });
}

}  // namespace
}  // namespace unisono::parallel
