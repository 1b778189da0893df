// `unisono pipeline make`: a better order for the same stages.
#include "pipeline/make.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "pipeline/json.h"
#include "pipeline/text.h"
#include "pipeline/verify.h"
#include "pipelines/pipelines.h"

namespace unisono::cli {
namespace {

double most_of(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double limit_of(const pipeline::Pipeline& pipeline, const Arguments& arguments) {
  if (!arguments.has("limit")) {
    const pipeline::Verdict verdict = verify(pipeline);
    if (verdict.least_capacity < 0) {
      throw UsageError(fmt::format("{} is invalid", pipeline.name), {}, "unisono pipeline verify");
    }
    return most_of(verdict.peak_bytes);
  }
  const bool has_unit = ends_in_unit(arguments.text("limit"));
  if (has_unit && !holds_bytes(pipeline)) {
    throw UsageError(
        fmt::format("--limit {}: the bytes that a microbatch of a stage holds are unknown",
                    arguments.text("limit")),
        "give a number of microbatches, such as 4, or a file that states its memory in bytes");
  }
  const double limit =
      has_unit ? static_cast<double>(arguments.bytes("limit")) : arguments.real("limit");
  if (!(limit > 0)) {
    throw UsageError("--limit must be a number above 0");
  }
  return limit;
}

void print_json(const pipeline::Made& made, double limit, const Arguments& arguments) {
  const pipeline::Verdict verdict = verify(made.pipeline);
  const nlohmann::ordered_json json = {
      {"schema", "unisono.pipeline_make/1"},
      {"time_unit", time_unit_json(arguments)},
      {"makespan", made.makespan},
      {"bound", made.bound},
      {"limit", limit},
      {"from", made.from},
      {"best_entry", made.best_entry},
      {"best_entry_makespan", made.best_entry.empty()
                                  ? nlohmann::ordered_json(nullptr)
                                  : nlohmann::ordered_json(made.best_entry_makespan)},
      {"memory_unit", memory_unit(made.pipeline)},
      {"peak_memory", verdict.peak_bytes},
      {"pipeline", nlohmann::ordered_json::parse(to_json(made.pipeline))}};
  fmt::print("{}\n", json.dump(2));
}

void print_text(const pipeline::Made& made, const Arguments& arguments, double limit,
                const Console& console) {
  const auto time = [&](double value) { return pipeline_time(value, arguments); };
  fmt::print("{}  p={} stages={} m={}\n", console.paint(Paint::strong, made.pipeline.name),
             made.pipeline.ranks, made.pipeline.stages(), made.pipeline.microbatches);
  fmt::print("  takes {}; no order takes less than {}\n", time(made.makespan), time(made.bound));
  if (!made.best_entry.empty()) {
    fmt::print("  {}, the best of the catalogue within {}, takes {} ({:.1f} % more)\n",
               made.best_entry, held_text(limit, made.pipeline), time(made.best_entry_makespan),
               made.makespan > 0 ? 100 * (made.best_entry_makespan / made.makespan - 1) : 0);
  }
  fmt::print("  a rank holds at most {}; lanes hold {} message{}\n",
             held_text(most_of(verify(made.pipeline).peak_bytes), made.pipeline),
             made.pipeline.capacity, made.pipeline.capacity == 1 ? "" : "s");
}

}  // namespace

int make_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                  const Console& console) {
  const double limit = limit_of(pipeline, arguments);
  const Parsed<pipeline::Made> made =
      make(pipeline,
           {.most_bytes = limit,
            .seed = static_cast<std::uint64_t>(arguments.number("seed", 0, std::int64_t{1} << 62)),
            .work = static_cast<double>(arguments.number("work", 0, 1'000'000)) * 1e6});
  if (!made) {
    throw UsageError(made.message, "give a larger --limit, or other stages");
  }
  const std::string format = arguments.text("format");
  if (format == "csv" && pipeline.chains.size() > 1) {
    throw UsageError(
        fmt::format("the CSV format cannot express that {} has two chains", pipeline.name), {},
        "--format pipeline");
  }
  if (format != "text") {
    fmt::print("{}",
               format == "csv" ? to_csv(made.value->pipeline) : to_json(made.value->pipeline));
  } else if (console.json()) {
    print_json(*made.value, limit, arguments);
  } else {
    print_text(*made.value, arguments, limit, console);
  }
  return kDone;
}

}  // namespace unisono::cli
