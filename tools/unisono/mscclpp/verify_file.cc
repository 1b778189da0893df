#include "mscclpp/verify_file.h"

#include <fmt/format.h>

#include <utility>

#include "executors/program_file.h"
#include "executors/proof_report.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "mscclpp/limits.h"

namespace unisono::cli {
namespace {

mscclpp::ExecutionPlan load_plan(const std::string& path, const std::string& text) {
  return program_of_file(path, text, mscclpp::parse_plan(text), "msccl++");
}

}  // namespace

Schedule load_plan_schedule(const std::string& path, const std::string& text) {
  mscclpp::ExecutionPlan plan = load_plan(path, text);
  const mscclpp::PlanProof proof = mscclpp::check(plan);
  plan.root = proof.root;
  return schedule_of_file(path, "plan", proof.flaws, [&] { return mscclpp::to_schedule(plan); });
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
  for (std::string& remark : mscclpp::beyond_executor(plan, proof.longest_block)) {
    report.remarks.push_back(std::move(remark));
  }
  return print_proof(report, console);
}

}  // namespace unisono::cli
