#include "mscclpp/verify_file.h"

#include <fmt/format.h>

#include <utility>

#include "cli/failure.h"
#include "executors/proof_report.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

mscclpp::ExecutionPlan load_plan(const std::string& path, const std::string& text) {
  Parsed<mscclpp::ExecutionPlan> parsed = mscclpp::parse_plan(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono export all_reduce/ring -n 4 --to msccl++ shows the form");
  }
  return std::move(*parsed.value);
}

}  // namespace

Schedule load_plan_schedule(const std::string& path, const std::string& text) {
  mscclpp::ExecutionPlan plan = load_plan(path, text);
  const mscclpp::PlanProof proof = mscclpp::check(plan);
  if (!proof.flaws.empty()) {
    throw UsageError(fmt::format("{} is not a valid plan", path), to_text(proof.flaws.front()),
                     fmt::format("unisono verify {}", path));
  }
  plan.root = proof.root;
  try {
    return mscclpp::to_schedule(plan);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{} cannot be told as a schedule", path),
                     std::string(error.summary()), std::string(error.hint()));
  }
}

int verify_plan(const std::string& path, const std::string& text, const Console& console) {
  const mscclpp::ExecutionPlan plan = load_plan(path, text);
  const mscclpp::PlanProof proof = mscclpp::check(plan);
  ProofReport report{.schema = "unisono.verify.mscclpp/1",
                     .name = plan.name,
                     .collective = plan.collective,
                     .gpus = plan.gpus.size(),
                     .in_place = plan.in_place,
                     .out_of_place = !plan.in_place,
                     .flaws = proof.flaws,
                     .numbers = {{"root", proof.root},
                                 {"thread_blocks", proof.most_blocks},
                                 {"longest_thread_block", proof.longest_block},
                                 {"scratch_chunks", proof.most_scratch}}};
  report.remarks.push_back(fmt::format(
      "{} thread block{} of a GPU must run at once; scratch for {} chunk{} beside an input of {}",
      proof.most_blocks, proof.most_blocks == 1 ? "" : "s", proof.most_scratch,
      proof.most_scratch == 1 ? "" : "s", plan.gpus.front().chunks[0]));
  if (proof.longest_block > mscclpp::kMostOperationsOfBlock) {
    report.remarks.push_back(
        fmt::format("a thread block has {} operations; MSCCL++'s executor takes {}",
                    proof.longest_block, mscclpp::kMostOperationsOfBlock));
  }
  return print_proof(report, console);
}

}  // namespace unisono::cli
