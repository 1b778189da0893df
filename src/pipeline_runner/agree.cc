#include "pipeline_runner/agree.h"

#include <array>
#include <cstdint>

#include "base/hash.h"
#include "pipeline/json.h"
#include "unisono/error.hpp"

namespace unisono::parallel {

std::size_t TensorSpec::bytes() const {
  std::size_t count = size_of(dtype);
  for (const std::size_t length : shape) {
    if (__builtin_mul_overflow(count, length, &count)) {
      throw Error(ErrorCode::usage,
                  "a tensor " + text() + " has more bytes than 64 bits can count");
    }
  }
  return count;
}

std::string TensorSpec::text() const {
  std::string text = std::string(to_string(dtype)) + "[";
  for (const std::size_t length : shape) {
    text += (text.back() == '[' ? "" : ", ") + std::to_string(length);
  }
  return text + "]";
}

namespace detail {
namespace {

constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kSpecWords = 2 + kMostDimensions;

// Writes a data type (0: unset), the number of dimensions, and the dimensions.
void write_spec(const std::optional<TensorSpec>& spec, std::span<std::uint64_t> words) {
  if (!spec) {
    return;
  }
  words[0] = static_cast<std::uint64_t>(spec->dtype) + 1;
  words[1] = spec->shape.size();
  for (std::size_t i = 0; i < spec->shape.size(); ++i) {
    words[2 + i] = spec->shape[i];
  }
}

std::optional<TensorSpec> read_spec(std::span<const std::uint64_t> words) {
  if (words[0] == 0) {
    return std::nullopt;
  }
  return TensorSpec{
      .dtype = static_cast<Dtype>(words[0] - 1),
      .shape = {words.begin() + 2, words.begin() + 2 + static_cast<std::ptrdiff_t>(words[1])}};
}

std::string spec_problem(const PipelineStage& stage) {
  for (const auto* spec : {&stage.input, &stage.output}) {
    if (*spec && (*spec)->shape.size() > kMostDimensions) {
      return "a tensor of stage " + std::to_string(stage.stage) + " has more than 8 dimensions";
    }
    if (*spec) {
      static_cast<void>((*spec)->bytes());  // throws if they cannot be counted
    }
  }
  return "";
}

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::mismatch, "pipeline: " + what + "\n" + next);
}

// Finds the first rank whose schedule or shapes differ from this rank's.
void compare_schedules(Communicator& comm, const pipeline::Pipeline& pipeline,
                       const std::string& problem) {
  const std::array<std::uint64_t, 2> mine = {Hash().add(to_json(pipeline)).value(),
                                             problem.empty() ? 1U : 0U};
  std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine, all);
  if (!problem.empty()) {
    throw Error(ErrorCode::usage,
                "pipeline on rank " + std::to_string(comm.rank()) + ": " + problem);
  }
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank + 1] == 0) {
      refuse("rank " + std::to_string(rank) + " rejected its stages or callbacks",
             "see its own error");
    }
    if (all[2 * rank] != all[0]) {
      refuse("the schedules of rank 0 and rank " + std::to_string(rank) + " differ",
             "give all ranks the same one");
    }
  }
}

}  // namespace

std::vector<std::optional<TensorSpec>> agree(Communicator& comm, const pipeline::Pipeline& pipeline,
                                             const std::vector<PipelineStage>& stages,
                                             const std::string& problem) {
  std::string own = problem;
  for (const PipelineStage& stage : stages) {
    own = own.empty() ? spec_problem(stage) : own;
  }
  compare_schedules(comm, pipeline, own);
  std::vector<std::uint64_t> words(2 * kSpecWords * pipeline.stage_rank.size(), 0);
  const auto words_of = [&](int stage, bool output) {
    return std::span(words).subspan(
        (2 * static_cast<std::size_t>(stage) + (output ? 1 : 0)) * kSpecWords, kSpecWords);
  };
  for (const PipelineStage& stage : stages) {
    write_spec(stage.input, words_of(stage.stage, false));
    write_spec(stage.output, words_of(stage.stage, true));
  }
  comm.all_reduce(words, sum);  // each stage is on one rank, so a sum collects all of them
  std::vector<std::optional<TensorSpec>> outputs(pipeline.stage_rank.size());
  const pipeline::Neighbours around = neighbours(pipeline);
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    const int next = around.next[static_cast<std::size_t>(stage)];
    if (next < 0) {
      continue;
    }
    const auto place = [&](int which) {
      return "stage " + std::to_string(which) + " on rank " +
             std::to_string(pipeline.stage_rank[static_cast<std::size_t>(which)]);
    };
    const std::optional<TensorSpec> given = read_spec(words_of(stage, true));
    const std::optional<TensorSpec> wanted = read_spec(words_of(next, false));
    if (!given) {
      refuse(place(stage) + " does not declare its output for stage " + std::to_string(next),
             "set the output of every stage that has a next stage");
    }
    if (wanted && *wanted != *given) {
      refuse(place(stage) + " gives " + given->text() + ", but " + place(next) + " takes " +
                 wanted->text(),
             "give both the same type and shape");
    }
    outputs[static_cast<std::size_t>(stage)] = given;
  }
  return outputs;
}

}  // namespace detail
}  // namespace unisono::parallel
