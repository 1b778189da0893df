#include "msccl/verify_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "msccl/check.h"
#include "msccl/export.h"
#include "msccl/xml.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

constexpr std::size_t kMostShown = 20;

std::string ways_of(const msccl::MscclProgram& program) {
  return program.in_place && program.out_of_place ? "in place and out of place"
         : program.in_place                       ? "in place"
                                                  : "out of place";
}

void print_json(const msccl::MscclProgram& program, const msccl::Proof& proof) {
  nlohmann::ordered_json result;
  result["schema"] = "unisono.verify.msccl/1";
  result["name"] = program.name;
  result["collective"] = to_string(program.collective);
  result["ranks"] = program.gpus.size();
  result["in_place"] = program.in_place;
  result["out_of_place"] = program.out_of_place;
  result["right"] = proof.flaws.empty();
  result["room"] = proof.room;
  result["longest_thread_block"] = proof.longest_block;
  result["findings"] = nlohmann::json::array();
  for (const msccl::Flaw& flaw : proof.flaws) {
    result["findings"].push_back({{"gpu", flaw.gpu},
                                  {"thread_block", flaw.block},
                                  {"step", flaw.step},
                                  {"text", flaw.text}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

bool is_msccl_file(const std::string& path) {
  return path.ends_with(".xml");
}

msccl::MscclProgram load_msccl_program(const std::string& path, const std::string& text) {
  Parsed<msccl::MscclProgram> parsed = msccl::parse_xml(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono export all_reduce/ring -n 4 --to msccl-xml shows the form");
  }
  return std::move(*parsed.value);
}

Schedule load_msccl_schedule(const std::string& path, const std::string& text) {
  const msccl::MscclProgram program = load_msccl_program(path, text);
  if (const msccl::Proof proof = msccl::check(program); !proof.flaws.empty()) {
    throw UsageError(fmt::format("{} is not a valid program", path), to_text(proof.flaws.front()),
                     fmt::format("unisono verify {}", path));
  }
  try {
    return msccl::to_schedule(program);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{} cannot be told as a schedule", path),
                     std::string(error.summary()), std::string(error.hint()));
  }
}

int verify_msccl(const std::string& path, const std::string& text, const Console& console) {
  const msccl::MscclProgram program = load_msccl_program(path, text);
  const msccl::Proof proof = msccl::check(program);
  const bool right = proof.flaws.empty();
  if (console.json()) {
    print_json(program, proof);
    return right ? kDone : kAnswerIsNo;
  }
  fmt::print("{}  {}  {} GPUs  {}: {}\n", console.paint(Paint::strong, program.name),
             to_string(program.collective), program.gpus.size(), ways_of(program),
             right ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  for (std::size_t i = 0; i < proof.flaws.size() && i < kMostShown; ++i) {
    fmt::print("  {}\n", to_text(proof.flaws[i]));
  }
  if (proof.flaws.size() > kMostShown) {
    fmt::print("  ... and {} more; --json has all\n", proof.flaws.size() - kMostShown);
  }
  if (right && !console.quiet()) {
    if (proof.room > 1) {
      fmt::print("  a connection must hold {} messages, or it waits for ever\n", proof.room);
    }
    if (proof.longest_block > msccl::kMostStepsOfBlock) {
      fmt::print("  a thread block has {} steps; MSCCL's executor takes {}\n", proof.longest_block,
                 msccl::kMostStepsOfBlock);
    }
  }
  return right ? kDone : kAnswerIsNo;
}

}  // namespace unisono::cli
