#include "msccl/verify_file.h"

#include <fmt/format.h>

#include "executors/program_file.h"
#include "executors/proof_report.h"
#include "msccl/check.h"
#include "msccl/export.h"
#include "msccl/xml.h"

namespace unisono::cli {
namespace {

msccl::MscclProgram load_msccl_program(const std::string& path, const std::string& text) {
  return program_of_file(path, text, msccl::parse_xml(text), "msccl-xml");
}

}  // namespace

bool is_msccl_file(const std::string& path) {
  return path.ends_with(".xml");
}

Schedule load_msccl_schedule(const std::string& path, const std::string& text) {
  const msccl::MscclProgram program = load_msccl_program(path, text);
  return schedule_of_file(path, "program", msccl::check(program).flaws,
                          [&] { return msccl::to_schedule(program); });
}

int verify_msccl(const std::string& path, const std::string& text, const Console& console) {
  const msccl::MscclProgram program = load_msccl_program(path, text);
  const msccl::Proof proof = msccl::check(program);
  ProofReport report{
      .schema = "unisono.verify.msccl/1",
      .name = program.name,
      .collective = program.collective,
      .gpus = program.gpus.size(),
      .in_place = program.in_place,
      .out_of_place = program.out_of_place,
      .flaws = proof.flaws,
      .numbers = {{"room", proof.room}, {"longest_thread_block", proof.longest_block}}};
  if (proof.room > 1) {
    report.remarks.push_back(
        fmt::format("a connection must hold {} messages to avoid a deadlock", proof.room));
  }
  if (proof.longest_block > msccl::kMostStepsOfBlock) {
    report.remarks.push_back(
        fmt::format("a thread block has {} steps; MSCCL's executor supports {}",
                    proof.longest_block, msccl::kMostStepsOfBlock));
  }
  return print_proof(report, console);
}

}  // namespace unisono::cli
