// `unisono reshard show` and `verify`.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "base/rank_list.h"
#include "base/words.h"
#include "cli/failure.h"
#include "cli/text_table.h"
#include "cli/wrap.h"
#include "plan/plan.h"
#include "reshard/elements.h"
#include "reshards/reshards.h"

namespace unisono::cli {
namespace {

using Json = nlohmann::ordered_json;
using parallel::ReshardMove;
using parallel::ReshardPlan;

constexpr std::size_t kMostMoves = 1000;

struct Bytes {
  std::uint64_t sent = 0;      // to others
  std::uint64_t received = 0;  // from others
  std::uint64_t out = 0;       // of these, to and from other hosts
  std::uint64_t in = 0;
  std::uint64_t kept = 0;  // copied within own memory
};

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::vector<Bytes> bytes_by_rank(const ReshardPlan& plan) {
  std::vector<Bytes> all(plan.ranks());
  for (const ReshardMove& move : plan.moves) {
    const std::uint64_t bytes = move.bytes;
    if (move.from == move.to) {
      all[at(move.to)].kept += bytes;
      continue;
    }
    all[at(move.from)].sent += bytes;
    all[at(move.to)].received += bytes;
    if (plan.hosts[at(move.from)] != plan.hosts[at(move.to)]) {
      all[at(move.from)].out += bytes;
      all[at(move.to)].in += bytes;
    }
  }
  return all;
}

Json bytes_json(const Bytes& bytes) {
  return {{"sent", bytes.sent},
          {"received", bytes.received},
          {"sent_to_other_hosts", bytes.out},
          {"received_from_other_hosts", bytes.in},
          {"own_memory", bytes.kept}};
}

// The tensors as --names makes them.
struct Renaming {
  std::size_t targets = 0;
  std::size_t fused = 0;  // of these, from several sources
};

Renaming renaming_of(const ReshardQuestion& question) {
  Renaming count{.targets = question.targets.size()};
  for (const parallel::NamedTarget& target : question.targets) {
    count.fused += target.parts.size() > 1 ? 1U : 0U;
  }
  return count;
}

Json moves_json(const ReshardPlan& plan, std::optional<std::size_t> tensor) {
  Json moves = Json::array();
  for (const ReshardMove& move : plan.moves) {
    if (tensor && move.tensor != *tensor) {
      continue;
    }
    if (moves.size() == kMostMoves) {
      break;
    }
    moves.push_back({{"tensor", plan.tensors[move.tensor].name},
                     {"from", move.from},
                     {"to", move.to},
                     {"elements", parallel::elements_text(move.elements)},
                     {"bytes", move.bytes},
                     {"hop", move.hop},
                     {"summand", move.summand}});
  }
  return moves;
}

// The elements of a tensor that each rank has before.
Json held_json(const parallel::ReshardTensor& tensor) {
  Json held = Json::array();
  for (int position = 0; position < tensor.from.mesh.ranks(); ++position) {
    held.push_back({{"rank", tensor.from.rank_at(position)},
                    {"elements", parallel::elements_text(
                                     parallel::elements_at(tensor.from, tensor.shape, position))}});
  }
  return held;
}

void print_totals(const ReshardPlan& plan) {
  const std::vector<Bytes> bytes = bytes_by_rank(plan);
  std::uint64_t kept = 0;
  for (const Bytes& one : bytes) {
    kept += one.kept;
  }
  fmt::print("sent         {}, {} of it between hosts\n", format_bytes(plan.bytes_sent()),
             format_bytes(plan.bytes_between_hosts()));
  fmt::print("own memory   {}\n", format_bytes(kept));
  if (const BusiestRank busiest = busiest_rank(plan, parallel::reshard_bound(plan));
      busiest.sent > 0) {
    fmt::print("sends most   {}\n", busiest.text());
  }
}

void print_hosts(const ReshardPlan& plan, const Console& console) {
  const std::vector<Bytes> by_rank = bytes_by_rank(plan);
  std::map<int, std::pair<std::vector<int>, Bytes>> hosts;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto& [ranks, sum] = hosts[plan.hosts[rank]];
    ranks.push_back(static_cast<int>(rank));
    sum.sent += by_rank[rank].sent;
    sum.out += by_rank[rank].out;
    sum.in += by_rank[rank].in;
    sum.kept += by_rank[rank].kept;
  }
  TextTable table({{.heading = "host ranks", .left = true},
                   {.heading = "to other hosts"},
                   {.heading = "from other hosts"},
                   {.heading = "within"},
                   {.heading = "own memory"}});
  for (const auto& [host, row] : hosts) {
    const Bytes& sum = row.second;
    table.add({rank_list(row.first), format_bytes(sum.out), format_bytes(sum.in),
               format_bytes(sum.sent - sum.out), format_bytes(sum.kept)});
  }
  fmt::print("{}", table.text(console));
}

std::optional<std::size_t> tensor_of(const ReshardQuestion& question, const Arguments& arguments) {
  const auto& tensors = question.plan.tensors;
  if (!arguments.has("tensor")) {
    return tensors.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const std::string name = arguments.text("tensor");
  const auto found = std::ranges::find(tensors, name, &parallel::ReshardTensor::name);
  if (found == tensors.end()) {
    std::vector<std::string_view> names;
    for (const auto& tensor : tensors) {
      names.emplace_back(tensor.name);
    }
    const std::string near = did_you_mean(name, names);
    throw UsageError(fmt::format("{} has no tensor {}", question.what, in_quotes(name)),
                     near.empty() ? "such as " + tensors.front().name : near,
                     "unisono help reshard");
  }
  return static_cast<std::size_t>(found - tensors.begin());
}

// One line for each move, for tensors that no grid shows.
void print_moves(const ReshardPlan& plan, std::size_t tensor) {
  constexpr std::size_t kShown = 40;
  std::size_t count = 0;
  for (const ReshardMove& move : plan.moves) {
    if (move.tensor != tensor) {
      continue;
    }
    if (++count <= kShown) {
      fmt::print("  {:>4} -> {:<4}  {}\n", move.from, move.to,
                 parallel::elements_text(move.elements));
    }
  }
  if (count > kShown) {
    fmt::print("  and {} more; --json has up to {}\n", times(count - kShown, "move"), kMostMoves);
  }
}

void print_tensor(const ReshardPlan& plan, std::size_t tensor, const Console& console) {
  const parallel::ReshardTensor& one = plan.tensors[tensor];
  if (plan.tensors.size() > 1) {
    fmt::print("\n{}, {}\n  from {}\n  to   {}\n", console.paint(Paint::strong, one.name),
               parallel::Tensor::packed(nullptr, one.dtype, one.shape).text(), one.from.text(),
               one.to.text());
  }
  const std::string grids = reshard_grids(plan, tensor, console.width());
  if (grids.empty()) {
    print_moves(plan, tensor);
    return;
  }
  fmt::print("\n{}\n2<0: rank 2 receives it from rank 0; 2 alone: from its own memory\n\n", grids);
}

}  // namespace

BusiestRank busiest_rank(const ReshardPlan& plan, const parallel::ReshardBound& bound) {
  const std::vector<std::size_t> sent = plan.bytes_sent_by_rank();
  const auto most = std::ranges::max_element(sent);
  return {.rank = static_cast<std::size_t>(most - sent.begin()),
          .sent = *most,
          .least = bound.bytes_sent_by_busiest};
}

std::string BusiestRank::text() const {
  return fmt::format("rank {}, {}; at least {}: {:.2f}x", rank, format_bytes(sent),
                     format_bytes(least), static_cast<double>(sent) / static_cast<double>(least));
}

int show_reshard(const ReshardQuestion& question, const Arguments& arguments,
                 const Console& console) {
  const std::optional<std::size_t> tensor = tensor_of(question, arguments);
  const ReshardPlan& plan = question.plan;
  if (console.json()) {
    Json ranks = Json::array();
    for (const Bytes& bytes : bytes_by_rank(plan)) {
      ranks.push_back(bytes_json(bytes));
    }
    const BusiestRank busiest = busiest_rank(plan, parallel::reshard_bound(plan));
    Json json = {{"schema", "unisono.reshard_show/1"},
                 {"what", question.what},
                 {"from", question.from},
                 {"to", question.to},
                 {"notes", question.notes},
                 {"tensors", plan.tensors.size()},
                 {"bytes_sent", plan.bytes_sent()},
                 {"bytes_between_hosts", plan.bytes_between_hosts()},
                 {"busiest_rank", busiest.rank},
                 {"busiest_rank_bytes_sent", busiest.sent},
                 {"least_busiest_rank_bytes_sent", busiest.least},
                 {"hosts", plan.hosts},
                 {"ranks", ranks}};
    if (tensor) {
      json["held"] = held_json(plan.tensors[*tensor]);
      json["moves"] = moves_json(plan, tensor);
    }
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  fmt::print("{}", reshard_heading(question, console));
  if (tensor) {
    print_tensor(plan, *tensor, console);
  }
  print_totals(plan);
  if (!tensor) {
    fmt::print("\n");
    print_hosts(plan, console);
  }
  return kDone;
}

int verify_reshard(const ReshardQuestion& question, const Console& console) {
  const ReshardPlan& plan = question.plan;
  const parallel::ReshardBound bound = parallel::reshard_bound(plan);
  const std::vector<std::string> findings = parallel::verify_reshard(plan);
  const BusiestRank busiest = busiest_rank(plan, bound);
  const bool is_right = findings.empty();
  if (console.json()) {
    fmt::print("{}\n", Json({{"schema", "unisono.reshard_verify/1"},
                             {"what", question.what},
                             {"from", question.from},
                             {"to", question.to},
                             {"notes", question.notes},
                             {"right", is_right},
                             {"tensors", plan.tensors.size()},
                             {"moves", plan.moves.size()},
                             {"bytes_sent", plan.bytes_sent()},
                             {"least_bytes_sent", bound.bytes_sent},
                             {"bytes_between_hosts", plan.bytes_between_hosts()},
                             {"least_bytes_between_hosts", bound.bytes_between_hosts},
                             {"busiest_rank", busiest.rank},
                             {"busiest_rank_bytes_sent", busiest.sent},
                             {"least_busiest_rank_bytes_sent", busiest.least},
                             {"engine_tensors", question.targets.size()},
                             {"fused_engine_tensors", renaming_of(question).fused},
                             {"findings", findings}})
                           .dump(2));
    return is_right ? kDone : kAnswerIsNo;
  }
  fmt::print("{}{}\n", reshard_heading(question, console),
             is_right ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  for (const std::string& finding : findings) {
    fmt::print("  {}\n", finding);
  }
  if (is_right) {
    fmt::print("{}", wrap(fmt::format("{}: each element of each target is written once, from the "
                                      "right source element, after its data have arrived",
                                      times(plan.moves.size(), "move")),
                          2, console.width()));
  }
  const auto against = [](std::uint64_t sent, std::uint64_t least) {
    return fmt::format("{}, {}", format_bytes(sent),
                       sent == least ? std::string("the fewest that any plan needs")
                                     : fmt::format("at least {}", format_bytes(least)));
  };
  fmt::print("sent           {}\n", against(plan.bytes_sent(), bound.bytes_sent));
  fmt::print("between hosts  {}\n", against(plan.bytes_between_hosts(), bound.bytes_between_hosts));
  if (const Renaming names = renaming_of(question); names.targets > 0) {
    fmt::print("names          {} of the engine, {} of them fused\n",
               times(names.targets, "tensor"), names.fused);
  }
  if (busiest.sent > 0) {
    fmt::print("sends most     {}\n", busiest.text());
  }
  return is_right ? kDone : kAnswerIsNo;
}

}  // namespace unisono::cli
