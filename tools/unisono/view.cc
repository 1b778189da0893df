// `unisono view`: writes the catalogue, a schedule or a recording as one HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/moe_routing.h"
#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/json_document.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "record/files.h"
#include "record/views.h"
#include "steps/steps.h"
#include "topo/topo.h"
#include "topology/json.h"
#include "unisono/error.hpp"
#include "view/deliver.h"
#include "view/pack.h"
#include "view/page.h"
#include "view/pipelines.h"

namespace unisono::cli {
namespace {

constexpr int kMostViewedRanks = 1024;
constexpr int kMostRouted = 16;  // the most ranks of a routing
// The most moves that a page can play; the ring of 512 ranks has half a million.
constexpr std::size_t kMostViewedMoves = 2'000'000;
constexpr std::size_t kLargestFile = 64'000'000;

nlohmann::ordered_json schedule_data(const Schedule& schedule) {
  if (schedule.moves.size() > kMostViewedMoves) {
    throw UsageError(fmt::format("{} moves are too many for a page", schedule.moves.size()),
                     fmt::format("at most {}", kMostViewedMoves),
                     "unisono show prints any schedule");
  }
  nlohmann::ordered_json data = pack(schedule);
  data["collective"] = to_string(called_form(schedule));
  data["algorithm"] = schedule.algorithm;
  data["file"] = schedule.file;
  if (const Counts& counts = schedule.counts; !counts.empty()) {
    data["counts"] = {{"element_bytes", counts.element_bytes}, {"send", counts.send}};
    if (!counts.receive.empty()) {
      data["counts"]["receive"] = counts.receive;
    }
  }
  return data;
}

bool is_recording(const nlohmann::ordered_json& document) {
  return (document.is_object() && document.contains("traceEvents")) ||
         begins(document, "format", "unisono.trace/") || begins(document, "schema", "unisono.why/");
}

// Returns the topology with all of its devices and links, because the page knows no presets.
nlohmann::ordered_json topology_data(const std::string& target) {
  constexpr std::size_t kMostDevices = 20'000;
  const Topology topology = load_topology(target);
  if (topology.devices.size() > kMostDevices) {
    throw UsageError(fmt::format("{} devices are too many for a page", topology.devices.size()),
                     fmt::format("at most {}", kMostDevices), "unisono topo prints any topology");
  }
  return nlohmann::ordered_json::parse(to_json(topology));
}

// Returns the world ranks of a recorded operation's group, in the order of the group. If the
// recording does not contain the group, returns all ranks if all took part.
std::vector<int> members_of(const nlohmann::ordered_json& operation) {
  if (operation.contains("groups") && !operation["groups"].at("ranks").empty()) {
    return operation["groups"]["ranks"].at(0).get<std::vector<int>>();
  }
  const std::set<int> in(operation["ops"]["rank"].begin(), operation["ops"]["rank"].end());
  const auto ranks = operation.at("ranks").get<std::size_t>();
  return in.size() == ranks ? std::vector<int>(in.begin(), in.end()) : std::vector<int>();
}

// Adds the schedule that ran this operation of a recording, so that the prediction is drawn below
// it: for the ranks of its group in their order. Adds nothing if it is not in the catalogue, or the
// recording's version does not contain its members.
void add_schedule_of(const nlohmann::ordered_json& operation, nlohmann::ordered_json& data) {
  const std::string name = operation.at("name");
  const auto& listed = catalog();
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const Algorithm* algorithm) {
    return fmt::format("{}/{}", to_string(algorithm->collective), algorithm->name) == name;
  });
  const std::vector<int> members = members_of(operation);
  if (found == listed.end() || members.empty() || members.size() > kMostViewedRanks) {
    return;
  }
  Shape shape{.ranks = static_cast<int>(members.size())};
  if (is_rooted((*found)->collective)) {
    const nlohmann::ordered_json roots = operation["ops"].value("root", nlohmann::ordered_json());
    const auto root = roots.empty() || !roots.front().is_number_integer()
                          ? members.end()
                          : std::find(members.begin(), members.end(), roots.front().get<int>());
    if (root == members.end()) {
      return;
    }
    shape.root = static_cast<int>(root - members.begin());
  }
  if (can_serve(**found, shape)) {
    data["schedule"] = schedule_data(build_schedule(**found, shape));
  }
}

// Returns a router's choices as the counts of tokens that the page plays: a row for each rank, a
// column for each expert.
nlohmann::ordered_json routing_data(const std::string& path, int ranks, const Console& console) {
  constexpr int kMostExperts = 64;
  constexpr int kMostTokens = 200;  // per rank and expert, because the page moves them one by one
  const MoeCase row = read_routing(path, 0, ranks);
  if (row.left_out != 0) {
    console.note(left_out_text(row, ranks));
  }
  const int each = (row.experts + ranks - 1) / ranks;
  if (each * ranks > kMostExperts) {
    throw UsageError(fmt::format("{} has {} experts; the page shows at most {}", path, row.experts,
                                 kMostExperts / ranks * ranks),
                     "use a part of them, or read the table that plan moe prints",
                     fmt::format("unisono plan moe --routing {} -n {} --hidden 2048", path, ranks));
  }
  const auto experts = static_cast<std::size_t>(each * ranks);
  std::vector<std::vector<int>> counts(static_cast<std::size_t>(ranks),
                                       std::vector<int>(experts, 0));
  const std::size_t choices = row.tokens * static_cast<std::size_t>(row.k);
  for (std::size_t i = 0; i < choices * counts.size(); ++i) {
    if (const int expert = row.chosen[i]; expert >= 0) {
      int& count = counts[i / choices][static_cast<std::size_t>(expert)];
      if (++count > kMostTokens) {
        throw UsageError(
            fmt::format(
                "{}: more than {} tokens of rank {} for expert {}; the page shows each token", path,
                kMostTokens, i / choices, expert),
            "use the first tokens of the file", fmt::format("head -n 256 {}", path));
      }
    }
  }
  return {{"format", "unisono.routing/1"}, {"counts", counts}};
}

// Adds a schedule, or any other file that the page reads; the page reports errors in it. `op`: adds
// only this operation of a recording; "": all.
void add_file(const std::string& path, const std::string& op, nlohmann::ordered_json& data) {
  const std::string text = read_text_file(path, kLargestFile);
  const auto document = parse_json_document<nlohmann::ordered_json>(path, text);
  if (path.ends_with(".csv") || begins(document, "format", "unisono.pipeline/")) {
    if (!op.empty()) {
      throw UsageError(fmt::format("{} is not a recording", path), "--op needs a recording",
                       "unisono run --record FILE makes one");
    }
    data["pipeline"] = pipeline_file_data(path, text);
    return;
  }
  // The loader of schedules reports the position of an error in a document written by hand.
  if (document.is_discarded() && text.substr(0, 256).find("unisono.trace/") != std::string::npos) {
    refuse_cut(path);
  }
  if (document.is_discarded()) {
    refuse_other_files(
        path, text,
        "give a recording, a schedule, a pipeline, a step, a plan, a topology or a simulation");
  }
  if (is_recording(document)) {
    refuse_other_version(path, document);
    if (document.contains("traceEvents") && !is_simulated(document)) {
      refuse_traces(path, document);
    }
    data["recording"] = op.empty() ? document : one_operation(document, op);
    if (!op.empty()) {
      try {
        add_schedule_of(data["recording"], data);
      } catch (const nlohmann::json::exception&) {
        throw UsageError("the recording is incomplete",
                         "docs/formats/trace.md describes the format",
                         "unisono run --record FILE makes one");
      }
    }
    return;
  }
  if (!op.empty()) {
    throw UsageError(fmt::format("{} is not a recording", path), "--op needs a recording",
                     "unisono run --record FILE makes one");
  }
  if (begins(document, "schema", "unisono.pipeline_times/")) {
    data["pipeline_times"] = pipeline_times_data(path, document);
    return;
  }
  if (begins(document, "format", "unisono.step/")) {
    data["step"] = step_page_data(load_step(path));
    return;
  }
  if (begins(document, "schema", "unisono.step_show/") ||
      begins(document, "schema", "unisono.step_verify/")) {
    data["step"] = document;
    return;
  }
  if (begins(document, "schema", "unisono.plan_model/")) {
    data["plan"] = document;
    return;
  }
  if (begins(document, "format", "unisono.routing/")) {
    data["routing"] = document;
    return;
  }
  if (begins(document, "format", "unisono.topology/")) {
    data["topology"] = topology_data(path);
    return;
  }
  if (begins(document, "format", "unisono.workload/")) {
    throw UsageError(
        fmt::format("{} is a workload, which has no times until it is simulated", path),
        fmt::format("unisono sim {} --on dgx_h100:nodes=2 --trace sim.json, then "
                    "unisono view sim.json",
                    path),
        "unisono help sim");
  }
  if (const std::string format = format_of(document);
      !format.empty() && !format.starts_with("unisono.schedule/")) {
    throw UsageError(
        fmt::format("{} is {}", path, format),
        "give a recording, a schedule, a pipeline, a step, a plan, a topology or a simulation",
        "unisono help view");
  }
  data["schedule"] = schedule_data(load_schedule(path));
}

void add_algorithm(const std::string& target, const Arguments& arguments,
                   nlohmann::ordered_json& data) {
  if (arguments.has("op")) {
    throw UsageError("--op needs a recording", "unisono view FILE --op 'world #17'",
                     "unisono run --record FILE makes one");
  }
  data["schedule"] =
      schedule_data(asked_schedule(arguments, "view", asked_counts(arguments), kMostViewedRanks));
  // A v-form has the schedule of the plain form; the page says that it draws equal blocks.
  data["schedule"]["collective"] = to_string(collective_of(target.substr(0, target.find('/'))));
}

// Converts a text to a part of a file's name: "world #17" -> "world-17".
std::string file_word(const std::string& text) {
  std::string word;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      word += c;
    } else if (!word.empty() && word.back() != '-') {
      word += '-';
    }
  }
  return word;
}

// "all_reduce/ring" and 8 -> "all_reduce-ring-n8.html"; a file -> its name with .html, and one
// operation of it -> "run-world-17.html".
std::string default_name(const Arguments& arguments) {
  if (arguments.operands().empty() && !arguments.has("routing")) {
    return "unisono.html";
  }
  std::string name =
      arguments.has("routing") ? arguments.text("routing") : arguments.operands().front();
  if (arguments.has("routing") || is_schedule_file(name)) {
    name = name.substr(name.rfind('/') + 1);
    const std::string op = file_word(arguments.text("op"));
    return name.substr(0, name.rfind('.')) + (op.empty() ? "" : "-" + op) + ".html";
  }
  for (char& c : name) {
    c = c == '/' || c == ':' || c == '=' || c == ',' ? '-' : c;
  }
  return arguments.has("counts") ? name + ".html"
                                 : fmt::format("{}-n{}.html", name, arguments.text("ranks"));
}

int run_view(const Arguments& arguments, const Console& console) {
  nlohmann::ordered_json data;
  if (arguments.has("op") && (arguments.text("op").empty() || arguments.operands().empty())) {
    throw UsageError("--op needs an operation and a recording",
                     "unisono view FILE --op 'world #17'", "unisono view FILE lists them");
  }
  if (arguments.has("counts") && (arguments.operands().empty() || arguments.has("op"))) {
    throw UsageError("--counts needs a schedule of all_to_all_v",
                     "unisono view all_to_all_v/pairwise --counts FILE", "unisono help view");
  }
  if (arguments.has("routing")) {
    if (!arguments.operands().empty()) {
      throw UsageError("--routing cannot be used with a schedule or a file", {},
                       "unisono view --routing FILE -n 4");
    }
    data["routing"] =
        routing_data(arguments.text("routing"),
                     static_cast<int>(arguments.number("ranks", 1, kMostRouted)), console);
  } else if (!arguments.operands().empty()) {
    const std::string& target = arguments.operands().front();
    if (is_schedule_file(target)) {
      for (const std::string_view option : {"ranks", "root"}) {
        if (arguments.has(option)) {
          throw UsageError(fmt::format("--{} cannot be used with a file", option),
                           fmt::format("{} defines it", target), "unisono help view");
        }
      }
      if (arguments.has("counts")) {
        data["schedule"] =
            schedule_data(asked_schedule(arguments, "view", asked_counts(arguments)));
      } else {
        add_file(target, arguments.text("op"), data);
      }
    } else {
      add_algorithm(target, arguments, data);
    }
  }
  if (arguments.has("on")) {
    data["topology"] = topology_data(arguments.text("on"));
  }
  return deliver_page(std::move(data), default_name(arguments), arguments, console);
}

constexpr Option kViewOptions[] = {
    {.name = "ranks", .letter = 'n', .value = "N", .help = "The number of ranks.", .fallback = "8"},
    {.name = "root",
     .value = "R",
     .help = "The root of broadcast, scatter, gather and reduce.",
     .fallback = "0"},
    {.name = "counts",
     .value = "FILE",
     .help = "For all_to_all_v: how much each rank sends to every other rank, one row per sender. "
             "The page contains the schedule."},
    {.name = "routing",
     .value = "FILE",
     .help = "Play the choices of a router on -n ranks, at most 16. The file has one token per "
             "line, as for `unisono plan moe --routing`."},
    {.name = "op",
     .value = "WHICH",
     .help = "Show only this operation of a recording, such as 'world #17' (or 17), over its "
             "prediction."},
    {.name = "on",
     .value = "TOPOLOGY",
     .help = "The machine for the load of its links: a preset or a file, as for `unisono topo`."},
    {.name = "lang",
     .value = "LANGUAGE",
     .help = "The language in which the page opens. Without it: the browser's language.",
     .choices = "en|zh"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "The file to write; - is standard output. Without it: a file in this folder, named "
             "after its content."},
    {.name = "no-open", .help = "Write the page, but do not open it on the desktop."},
    kServeOption};

}  // namespace

const Command kViewCommand = {
    .name = "view",
    .summary = "write a page that shows schedules and recorded runs",
    .operands = "[COLLECTIVE/ALGORITHM | FILE]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono view", "Open the article, and the lab with the whole catalogue."},
                  {"unisono view all_reduce/ring -n 8", "Open the page at this schedule."},
                  {"unisono view all_to_all/pairwise -n 16 --on dgx_h100:nodes=2",
                   "Show which links of a machine are busy."}}},
    .description =
        "The page is one self-contained HTML file: it needs no network and no server. It opens "
        "with an article on how models communicate. Its tabs are the lab: it shows whose data is "
        "where at every step, lets you break a schedule and shows the error, compares algorithms, "
        "and explains each collective. A v-form is drawn as its plain form, with the same count "
        "for every rank.\n\n"
        "FILE is a schedule (unisono.schedule/1), a recording (unisono.trace/1), a pipeline "
        "(unisono.pipeline/1, or FILE.csv of torch.distributed.pipelining), the times of its run "
        "(unisono.pipeline_times/1), a topology (unisono.topology/1), a routing of experts "
        "(unisono.routing/1), a step of a model (unisono.step/1, or the output of unisono step "
        "show --json), a plan (of unisono plan-model --save), a simulation (of unisono sim "
        "--trace), or a diagnosis (of unisono trace why --json). Files can also be dropped on the "
        "page. If there is a desktop, xdg-open opens the page.",
    .options = kViewOptions,
    .run = run_view};

}  // namespace unisono::cli
