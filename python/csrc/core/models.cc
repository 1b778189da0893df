#include "models.h"

#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>
#include "base/parsed.h"
#include "cost/machine_json.h"
#include "engine/verify_sizes.h"
#include "network_model/fit_machine.h"
#include "network_model/plan.h"
#include "network_model/simulator/report.h"
#include "network_model/simulator/simulate.h"
#include "planner/device.h"
#include "topology/json.h"
#include "topology/presets.h"

#include "schedules.h"

namespace unisono_python {
namespace {

using py::arg;
using unisono::Schedule;
using unisono::Topology;
namespace cost = unisono::cost;
namespace network_model = unisono::network_model;

constexpr double kUs = 1e-6;
constexpr double kGb = 1e9;

[[noreturn]] void refuse(const std::string& what) {
  throw py::value_error(what);
}

template <typename T>
T value_of(unisono::Parsed<T> parsed, const std::string& text, const std::string& name) {
  if (!parsed) {
    refuse(name + unisono::place_in(text, parsed.position) + ": " + parsed.message);
  }
  return std::move(*parsed.value);
}

double s_per_byte(double gb_per_s, const char* name) {
  if (gb_per_s < 0) {
    refuse(std::string(name) + " is below zero");
  }
  return gb_per_s > 0 ? 1 / (gb_per_s * kGb) : 0;
}

// The link between every pair of ranks.
struct Link {
  cost::Parameters parameters;
};

Link make_link(double alpha_us, double beta_gb_per_s, double gamma_gb_per_s, double floor_us) {
  if (!(alpha_us >= 0) || !(floor_us >= 0)) {
    refuse("a time is below zero");
  }
  return {{.floor_s = floor_us * kUs,
           .alpha_s = alpha_us * kUs,
           .beta_s_per_byte = s_per_byte(beta_gb_per_s, "beta_gb_per_s"),
           .gamma_s_per_byte = s_per_byte(gamma_gb_per_s, "gamma_gb_per_s")}};
}

py::dict candidate_dict(const network_model::Candidate& candidate) {
  py::dict row;
  row["algorithm"] = candidate.name;
  row["time_us"] = candidate.time_s / kUs;
  row["messages"] = candidate.cost.messages;
  row["bytes"] = candidate.cost.bytes;
  row["reduced_bytes"] = candidate.cost.reduced_bytes;
  row["steps"] = candidate.moved.steps;
  row["sent_bytes"] = candidate.moved.sent_bytes;
  return row;
}

py::dict plan(const std::string& collective, int ranks, double bytes, const Link& link) {
  const network_model::Call call{
      .collective = collective_named(collective), .ranks = ranks, .bytes = bytes};
  if (ranks < 1 || ranks > 1'000'000 || !(bytes >= 0)) {
    refuse("a plan needs 1 to 1000000 ranks and 0 or more bytes");
  }
  std::optional<network_model::Plan> made;
  {
    const py::gil_scoped_release unlocked;
    made = network_model::make_plan(call, link.parameters);
  }
  py::dict result;
  py::list candidates;
  for (const network_model::Candidate& candidate : made->candidates) {
    candidates.append(candidate_dict(candidate));
  }
  py::list reasons;
  for (std::size_t i = 1; i < made->candidates.size(); ++i) {
    reasons.append(network_model::reason(made->candidates.front(), made->candidates[i]));
  }
  py::list ranges;
  for (const network_model::SizeRange& range : made->ranges) {
    ranges.append(py::make_tuple(range.from_bytes, std::string(range.algorithm->name)));
  }
  py::dict unable;
  for (const unisono::Algorithm* algorithm : made->unable) {
    unable[py::str(std::string(algorithm->name))] = std::string(algorithm->limits);
  }
  result["candidates"] = candidates;
  result["reasons"] = reasons;
  result["ranges"] = ranges;
  result["unable"] = unable;
  result["bound_us"] = made->bound.time_s(link.parameters) / kUs;
  return result;
}

struct Simulation {
  network_model::Workload workload;
  std::shared_ptr<const Topology> topology;  // shared with the caller's topology
  network_model::SimulationResult result;
};

struct Faults {
  std::map<int, double> late_us;
  std::map<int, double> slow;
  std::map<std::string, double> degrade;
};

network_model::Workload workload_of(const py::object& target, double bytes,
                                    std::optional<int> ranks, int root, bool written_out,
                                    int most_ranks) {
  if (py::isinstance<Schedule>(target)) {
    const auto schedule = target.cast<std::shared_ptr<Schedule>>();
    if (const auto findings = unisono::engine::verify_with_sizes(*schedule); !findings.empty()) {
      refuse("the schedule is invalid: " + to_text(findings.front()));
    }
    network_model::Workload workload{.ranks = schedule->ranks};
    if (!schedule->counts.empty()) {
      workload.items.push_back(network_model::exchange(*schedule));
      return workload;
    }
    workload.items.push_back({.name = std::string(to_string(schedule->collective)),
                              .bytes = bytes,
                              .schedule = schedule});
    return workload;
  }
  const auto text = target.cast<std::string>();
  if (text.find('{') != std::string::npos) {
    return value_of(network_model::parse_workload_json(text, written_out,
                                                       {.device = unisono::planner::find_rates}),
                    text, "the workload");
  }
  const Target parsed = parse_target(text);
  const unisono::Shape shape = shape_for(parsed, ranks.value_or(most_ranks), root);
  network_model::Workload workload{.ranks = shape.ranks};
  workload.items.push_back(network_model::operation(*parsed.algorithm, shape, bytes, written_out));
  return workload;
}

network_model::SimulationOptions options_of(const Faults& faults, int ports, double gamma_gb_per_s,
                                            double segment_bytes, const std::string& contention,
                                            double jitter, std::uint64_t seed,
                                            std::size_t records) {
  network_model::SimulationOptions options;
  if (ports < 1 || !(segment_bytes >= 0) || !(jitter >= 0)) {
    refuse("ports must be 1 or more, segment_bytes and jitter 0 or more");
  }
  if (contention != "auto" && contention != "on" && contention != "off") {
    refuse("contention must be 'auto', 'on' or 'off'");
  }
  options.ports = ports;
  options.gamma_us_per_byte = s_per_byte(gamma_gb_per_s, "gamma_gb_per_s") / kUs;
  options.segment_bytes = segment_bytes;
  options.contention = contention == "on"    ? network_model::Contention::on
                       : contention == "off" ? network_model::Contention::off
                                             : network_model::Contention::automatic;
  for (const auto& [rank, late] : faults.late_us) {
    options.rank_faults.push_back({.rank = rank, .late_us = late});
  }
  for (const auto& [rank, factor] : faults.slow) {
    options.rank_faults.push_back({.rank = rank, .factor = factor});
  }
  for (const auto& [name, part] : faults.degrade) {
    options.link_faults.push_back({.name = name, .bandwidth_factor = part});
  }
  options.jitter = jitter;
  options.seed = seed;
  options.records = records;
  options.most_messages = 3e8;
  return options;
}

std::shared_ptr<Simulation> simulate(const py::object& target, const py::object& on, double bytes,
                                     std::optional<int> ranks, int root, const Faults& faults,
                                     int ports, double gamma_gb_per_s, double segment_bytes,
                                     const std::string& contention, double jitter,
                                     std::uint64_t seed, std::size_t records) {
  auto made = std::make_shared<Simulation>();
  cost::Parameters flat;
  int most_ranks = 4;
  if (py::isinstance<Link>(on)) {
    flat = on.cast<Link>().parameters;
  } else {
    made->topology = on.cast<std::shared_ptr<Topology>>();
    most_ranks = made->topology->rank_count();
  }
  const auto options =
      options_of(faults, ports, gamma_gb_per_s, segment_bytes, contention, jitter, seed, records);
  if (!(bytes >= 0)) {
    refuse("bytes is below zero");
  }
  made->workload = workload_of(target, bytes, ranks, root, segment_bytes > 0, most_ranks);
  const py::gil_scoped_release unlocked;
  made->result = made->topology != nullptr
                     ? network_model::simulate(made->workload, *made->topology, options)
                     : network_model::simulate(made->workload, flat, options);
  return made;
}

void define_topology(py::module_& module) {
  py::class_<Topology, std::shared_ptr<Topology>>(
      module, "Topology", "Devices, the links between them, and the device of each rank.")
      .def_readonly("name", &Topology::name)
      .def_readonly("source", &Topology::source, "The source of the figures.")
      .def_property_readonly("ranks", &Topology::rank_count)
      .def_property_readonly("devices",
                             [](const Topology& self) {
                               std::vector<std::string> names;
                               for (const unisono::Device& device : self.devices) {
                                 names.push_back(device.name);
                               }
                               return names;
                             })
      .def_property_readonly("links", [](const Topology& self) { return self.links.size(); })
      .def("to_json", py::overload_cast<const Topology&>(&unisono::to_json))
      .def("__repr__", [](const Topology& self) {
        return "<Topology " + self.name + ", " + std::to_string(self.rank_count()) + " ranks>";
      });
  module.def(
      "topology",
      [](const std::string& text) {
        return std::make_shared<Topology>(
            text.find('{') != std::string::npos
                ? value_of(unisono::parse_topology_json(text), text, "the topology")
                : value_of(unisono::make_preset(text), "", text + ": "));
      },
      arg("text"), "A preset such as 'dgx_h100:nodes=2', or JSON (unisono.topology/1).");
  module.def(
      "presets",
      [] {
        std::map<std::string, std::string> found;
        for (const unisono::Preset* preset : unisono::presets()) {
          found.emplace(preset->name, preset->summary);
        }
        return found;
      },
      "Returns the names and summaries of the known machines.");
}

void define_simulation(py::module_& module) {
  py::class_<Simulation, std::shared_ptr<Simulation>>(
      module, "Simulation", "The result of a simulation: its duration, and where the time goes.")
      .def_property_readonly("total_us",
                             [](const Simulation& self) { return self.result.total_us; })
      .def_property_readonly("messages",
                             [](const Simulation& self) { return self.result.messages; })
      .def_property_readonly(
          "item_end_us", [](const Simulation& self) { return self.result.item_end_us; },
          "The time when the last rank ended each item of a workload.")
      .def(
          "report_json",
          [](const Simulation& self) {
            return report_json(self.result, self.workload, self.topology.get());
          },
          "Critical path, ranks and busiest links as JSON (unisono.simulation/1).")
      .def(
          "trace_json",
          [](const Simulation& self) { return chrome_trace(self.result, self.workload); },
          "Messages and compute steps for chrome://tracing; needs simulate(records=...).")
      .def("__repr__", [](const Simulation& self) {
        return "<Simulation, " + std::to_string(self.result.total_us) + " us>";
      });
  module.def(
      "simulate",
      [](const py::object& target, const py::object& on, double bytes, std::optional<int> ranks,
         int root, std::map<int, double> late_us, std::map<int, double> slow,
         std::map<std::string, double> degrade, int ports, double gamma_gb_per_s,
         double segment_bytes, const std::string& contention, double jitter, std::uint64_t seed,
         std::size_t records) {
        return simulate(target, on, bytes, ranks, root,
                        {std::move(late_us), std::move(slow), std::move(degrade)}, ports,
                        gamma_gb_per_s, segment_bytes, contention, jitter, seed, records);
      },
      arg("target"), arg("on"), py::kw_only(), arg("bytes") = 1048576.0, arg("ranks") = py::none(),
      arg("root") = 0, arg("late_us") = std::map<int, double>{},
      arg("slow") = std::map<int, double>{}, arg("degrade") = std::map<std::string, double>{},
      arg("ports") = 1, arg("gamma_gb_per_s") = 0.0, arg("segment_bytes") = 0.0,
      arg("contention") = "auto", arg("jitter") = 0.0, arg("seed") = 1, arg("records") = 0);
}

}  // namespace

void define_models(py::module_& module) {
  py::class_<Link>(module, "Link", "A network of equal links, one for each pair of ranks.")
      .def(py::init(&make_link), py::kw_only(), arg("alpha_us"), arg("beta_gb_per_s"),
           arg("gamma_gb_per_s") = 0.0, arg("floor_us") = 0.0,
           "alpha_us per message, beta_gb_per_s each way, gamma_gb_per_s to reduce (0: no time), "
           "floor_us to start a call.");
  module.def("plan", &plan, arg("collective"), arg("ranks"), arg("bytes"), arg("link"));
  define_topology(module);
  define_simulation(module);
  py::class_<cost::NamedMachine, std::shared_ptr<cost::NamedMachine>>(
      module, "Machine", "A machine measured by `unisono tune`.")
      .def_static(
          "from_json",
          [](const std::string& text) {
            return std::make_shared<cost::NamedMachine>(value_of(
                cost::parse_machine_json(text, network_model::fit_machine), text, "the machine"));
          },
          arg("text"))
      .def_readonly("name", &cost::NamedMachine::name)
      .def(
          "time_us",
          [](const cost::NamedMachine& self, const std::string& target, int ranks, double bytes) {
            const std::size_t slash = target.find('/');
            const auto collective = collective_named(target.substr(0, slash));
            const std::string algorithm =
                slash == std::string::npos ? "" : target.substr(slash + 1);
            if (!self.machine.knows(collective, algorithm)) {
              refuse("there are no measurements of " + target);
            }
            return self.machine.time_s(collective, algorithm, ranks, bytes) / kUs;
          },
          arg("target"), arg("ranks"), arg("bytes"),
          "Predicts the time of a call: 'all_reduce' for the library's choice, or "
          "'all_reduce/ring'.");
}

}  // namespace unisono_python
