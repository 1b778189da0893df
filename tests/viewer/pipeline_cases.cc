// Prints what the player and the verifier say of pipeline schedules: every entry of the catalogue
// in several shapes, with several costs and capacities, orders in which ranks wait for each other
// in any way, and mutants of each: one JSON object a line.
//
//   pipeline_cases MUTANTS
//
// The page's own player is compared with it. A mutant is an edit that the page can make as well.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/run.h"
#include "pipeline/text.h"
#include "pipeline/transfers.h"
#include "pipeline/verify.h"

namespace {

using nlohmann::ordered_json;
using unisono::pipeline::Action;
using unisono::pipeline::ActionKind;
using unisono::pipeline::Pipeline;

ordered_json verdict_of(const Pipeline& pipeline) {
  const unisono::pipeline::Verdict verdict = unisono::pipeline::verify(pipeline);
  ordered_json findings = ordered_json::array();
  for (const unisono::pipeline::Finding& finding : verdict.findings) {
    findings.push_back({{"kind", to_string(finding.kind)}, {"text", sentence(finding)}});
  }
  return {{"findings", findings},
          {"least_capacity", verdict.least_capacity},
          {"peak_activations", verdict.peak_activations},
          {"peak_bytes", verdict.peak_bytes}};
}

ordered_json run_of(const Pipeline& pipeline, unisono::pipeline::RunOptions options) {
  const unisono::pipeline::Run run = unisono::pipeline::run(pipeline, options);
  ordered_json spans = ordered_json::array();
  for (const std::vector<unisono::pipeline::Span>& row : run.spans) {
    ordered_json list = ordered_json::array();
    for (const unisono::pipeline::Span& span : row) {
      list.push_back({span.start, span.end});
    }
    spans.push_back(list);
  }
  return {{"slow_stage", options.slow_stage},
          {"slow_factor", options.slow_factor},
          {"makespan", run.makespan},
          {"busy", run.busy},
          {"spans", spans}};
}

// Drops an action outside overlaps, or swaps it with the next one.
bool mutate(Pipeline& pipeline, std::mt19937& random, ordered_json& edit) {
  const std::size_t rank = random() % pipeline.actions.size();
  std::vector<Action>& actions = pipeline.actions[rank];
  if (actions.size() < 2) {
    return false;
  }
  const std::size_t index = random() % (actions.size() - 1);
  for (std::size_t i = index < 2 ? 0 : index - 2; i <= index + 1; ++i) {
    if (actions[i].parts > 0) {
      return false;
    }
  }
  const auto at = actions.begin() + static_cast<std::ptrdiff_t>(index);
  const bool is_drop = random() % 2 == 0;
  edit = {{"rank", rank}, {"index", index}, {"drop", is_drop}};
  if (is_drop) {
    actions.erase(at);
  } else {
    std::iter_swap(at, at + 1);
  }
  return true;
}

// B before F.
void reverse_overlaps(Pipeline& pipeline) {
  for (std::vector<Action>& actions : pipeline.actions) {
    for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
      std::reverse(actions.begin() + static_cast<std::ptrdiff_t>(i + 1),
                   actions.begin() + static_cast<std::ptrdiff_t>(after(actions, i)));
    }
  }
}

// As in a model whose parameters are sharded, and whose ranks have replicas.
void add_stage_actions(Pipeline& pipeline) {
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    auto& actions = pipeline.actions[static_cast<std::size_t>(
        pipeline.stage_rank[static_cast<std::size_t>(stage)])];
    actions.insert(actions.begin(), {ActionKind::unshard, stage});
    actions.push_back({ActionKind::reduce_grad, stage});
    actions.push_back({ActionKind::reshard, stage});
  }
}

// Any order that is valid on each rank alone, if no stage is on the rank of the next one.
void shuffle(Pipeline& pipeline, std::mt19937& random) {
  for (std::vector<Action>& actions : pipeline.actions) {
    for (std::size_t i = actions.size(); i-- > 1;) {
      std::swap(actions[i], actions[random() % (i + 1)]);
    }
    for (auto backward = actions.begin(); backward != actions.end(); ++backward) {
      Action forward = *backward;
      forward.kind = ActionKind::forward;
      if (const auto late = std::find(backward, actions.end(), forward);
          backward->kind == ActionKind::backward && late != actions.end()) {
        std::iter_swap(backward, late);
      }
    }
  }
}

// `computations`: in the shape of the entry.
void print_case(const unisono::pipeline::Entry& entry, unisono::pipeline::PipelineSize shape,
                const Pipeline& computations, int mutants, std::mt19937& random) {
  Pipeline pipeline = build(entry, shape);
  pipeline.actions = computations.actions;
  add_transfers(pipeline);
  // Every third pipeline is uneven and slow to send, in steps that are exact binary fractions.
  const bool is_uneven = random() % 3 == 0;
  for (std::size_t stage = 0; is_uneven && stage < pipeline.stage_rank.size(); ++stage) {
    pipeline.costs.forward[stage] *= 1 + 0.25 * static_cast<double>(stage % 3);
    pipeline.costs.transfer[stage] = 0.125;
  }
  pipeline.capacity = static_cast<int>(random() % 3);
  pipeline.lanes = 1 + static_cast<int>(random() % 2);
  ordered_json line;
  line["pipeline"] = ordered_json::parse(to_json(pipeline));
  line["computations"] = ordered_json::array();
  for (const std::vector<Action>& row : computations.actions) {
    line["computations"].push_back(unisono::pipeline::actions_text(row));
  }
  line["runs"] = {run_of(pipeline, {}), run_of(pipeline, {.slow_stage = 1, .slow_factor = 1.5})};
  line["verdict"] = verdict_of(pipeline);
  line["mutants"] = ordered_json::array();
  for (int i = 0; i < mutants; ++i) {
    Pipeline mutant = pipeline;
    ordered_json edit;
    if (mutate(mutant, random, edit)) {
      line["mutants"].push_back({{"edit", edit}, {"verdict", verdict_of(mutant)}});
    }
  }
  std::cout << line.dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const int mutants = argc > 1 ? std::atoi(argv[1]) : 6;
  std::mt19937 random(1);
  for (const unisono::pipeline::Entry* entry : unisono::pipeline::catalog()) {
    for (const int ranks : {1, 2, 3, 4, 6, 8}) {
      for (const int microbatches : {1, 4, 12, 16}) {
        const unisono::pipeline::PipelineSize shape{
            .ranks = ranks,
            .chunks = entry->chunks == 0 ? 2 : entry->chunks,
            .microbatches = microbatches};
        if (unisono::pipeline::refusal(*entry, shape).empty()) {
          Pipeline computations = entry->build(shape);
          if (random() % 2 == 0) {
            reverse_overlaps(computations);
          }
          if (random() % 3 == 0) {
            add_stage_actions(computations);
          }
          print_case(*entry, shape, computations, mutants, random);
        }
      }
    }
  }
  for (int i = 0; i < 60; ++i) {
    const int ranks = 2 + i % 5;
    const unisono::pipeline::PipelineSize shape{.ranks = ranks, .chunks = 2, .microbatches = ranks};
    Pipeline computations = unisono::pipeline::interleaved.build(shape);
    shuffle(computations, random);
    print_case(unisono::pipeline::interleaved, shape, computations, mutants, random);
  }
}
