#include "schedules.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>
#include "base/parsed.h"
#include "cli/console.h"
#include "engine/verify_sizes.h"
#include "schedule/compose.h"
#include "schedule/json.h"
#include "schedule/text.h"
#include "schedule/verify.h"
#include "show/show.h"

namespace unisono_python {
namespace {

using py::arg;
using unisono::Algorithm;
using unisono::Buffer;
using unisono::Combine;
using unisono::CountRows;
using unisono::Finding;
using unisono::Move;
using unisono::MoveSpec;
using unisono::Schedule;
using unisono::ScheduleBuilder;

// Limits on the moves stored per pair of rank and chunk, somewhat above what fits into memory.
constexpr int kMostRanks = 4096;
constexpr int kMostChunks = 1 << 24;

[[noreturn]] void refuse(const std::string& what) {
  throw py::value_error(what);
}

std::string title_of(const Schedule& schedule) {
  const std::string collective(to_string(schedule.collective));
  return schedule.algorithm.empty() ? collective : collective + "/" + schedule.algorithm;
}

const char* buffer_name(Buffer buffer) {
  constexpr const char* kNames[] = {"input", "output", "scratch"};
  return kNames[static_cast<std::size_t>(buffer)];
}

MoveSpec::Place place_named(const std::string& name) {
  constexpr const char* kNames[] = {"automatic", "input", "output", "scratch"};
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) {
      return static_cast<MoveSpec::Place>(i);
    }
  }
  refuse("'" + name + "' is not a place; known are automatic, input, output, scratch");
}

// Returns the caller's file and line in the Python program.
std::pair<std::string, std::uint32_t> caller() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) {
    return {"", 0};
  }
  const auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  return {py::str(code.attr("co_filename")),
          static_cast<std::uint32_t>(PyFrame_GetLineNumber(frame))};
}

class Builder {
 public:
  Builder(const std::string& collective, int ranks, int chunks, int root, std::string algorithm)
      : ranks_(ranks), chunks_(chunks), algorithm_(std::move(algorithm)) {
    if (ranks < 1 || ranks > kMostRanks || chunks < 1 || chunks > kMostChunks || root < 0 ||
        root >= ranks) {
      refuse("a schedule has 1 to 4096 ranks, 1 to 2^24 chunks, and one of its ranks as root");
    }
    builder_.emplace(collective_named(collective),
                     ScheduleBuilder::Shape{.ranks = ranks, .chunks = chunks, .root = root});
    builder_->in_file(caller().first);
  }
  void phase(const std::string& name) { open().phase(name); }
  void step() { open().step(); }
  void move(int from, int to, int chunk, int chunks, bool reduce, const std::string& source,
            const std::string& target) {
    if (from < 0 || from >= ranks_ || to < 0 || to >= ranks_) {
      refuse("a move from rank " + std::to_string(from) + " to rank " + std::to_string(to) +
             "; ranks are 0 to " + std::to_string(ranks_ - 1));
    }
    if (chunk < 0 || chunks < 0 || chunks > chunks_ - chunk) {
      refuse("a move of " + std::to_string(chunks) + " chunks from chunk " + std::to_string(chunk) +
             " on; chunks are 0 to " + std::to_string(chunks_ - 1));
    }
    open().move_of_line({.from = from,
                         .to = to,
                         .chunk = chunk,
                         .chunks = chunks,
                         .combine = reduce ? Combine::reduce : Combine::replace,
                         .source = place_named(source),
                         .target = place_named(target)},
                        caller().second);
  }
  Schedule build() {
    Schedule schedule = std::move(open()).build();
    builder_.reset();
    schedule.algorithm = algorithm_;
    return schedule;
  }

 private:
  ScheduleBuilder& open() {
    if (!builder_.has_value()) {
      refuse("this builder has built its schedule");
    }
    return *builder_;
  }

  int ranks_;
  int chunks_;
  std::string algorithm_;
  std::optional<ScheduleBuilder> builder_;
};

Schedule from_json(const std::string& text, const std::string& name) {
  auto parsed = unisono::parse_schedule_json(text);
  if (!parsed) {
    refuse(name + unisono::place_in(text, parsed.position) + ": " + parsed.message);
  }
  return std::move(*parsed.value);
}

std::string show(const Schedule& schedule, std::optional<int> step, int width) {
  if (step.has_value() && (*step < 1 || *step > schedule.steps)) {
    refuse("step " + std::to_string(*step) + "; this schedule has " +
           std::to_string(schedule.steps) + ", counted from 1");
  }
  const auto console = unisono::cli::Console::make("never", false, true, false);
  const unisono::cli::ShowOptions options{.step = step.value_or(0) - 1, .width = width};
  const std::string strips = draw_strips(schedule, options, console);
  return strips.empty() ? draw_summary(schedule, options, console) : strips;
}

void define_parts(py::module_& module) {
  py::class_<Move>(module, "Move", "A range of chunks from one rank to another, in one step.")
      .def_readonly("step", &Move::step, "Counted from 0.")
      .def_readonly("from_", &Move::from)
      .def_readonly("to", &Move::to)
      .def_readonly("chunk", &Move::chunk, "The first chunk.")
      .def_readonly("chunks", &Move::chunks)
      .def_readonly("line", &Move::line, "The source line in the program that made it; 0: unknown.")
      .def_property_readonly("source", [](const Move& self) { return buffer_name(self.source); })
      .def_property_readonly("target", [](const Move& self) { return buffer_name(self.target); })
      .def_property_readonly("reduces",
                             [](const Move& self) { return self.combine == Combine::reduce; })
      .def("__repr__", [](const Move& self) { return "<Move " + to_text(self) + ">"; });
  py::class_<Finding>(module, "Finding", "A mistake in a schedule, and its place.")
      .def_property_readonly("kind", [](const Finding& self) { return to_string(self.kind); })
      .def_readonly("step", &Finding::step, "The step, counted from 0; -1: at the end, or none.")
      .def_readonly("rank", &Finding::rank)
      .def_readonly("chunk", &Finding::chunk)
      .def_readonly("line", &Finding::line, "The source line of the move at fault.")
      .def_property_readonly("text", [](const Finding& self) { return to_text(self); })
      .def("__repr__", [](const Finding& self) { return "<Finding " + to_text(self) + ">"; });
  py::class_<Algorithm, std::unique_ptr<Algorithm, py::nodelete>>(module, "Algorithm",
                                                                  "An entry of the catalogue.")
      .def_property_readonly("name", [](const Algorithm& self) { return self.name; })
      .def_property_readonly("collective",
                             [](const Algorithm& self) { return to_string(self.collective); })
      .def_property_readonly("summary", [](const Algorithm& self) { return self.summary; })
      .def_property_readonly("source", [](const Algorithm& self) { return self.source; })
      .def_property_readonly("limits", [](const Algorithm& self) { return self.limits; })
      .def_readonly("allows_v", &Algorithm::allows_v)
      .def_readonly("in_place", &Algorithm::in_place)
      .def(
          "can_serve",
          [](const Algorithm& self, int ranks) {
            return ranks >= 1 && can_serve(self, {.ranks = ranks});
          },
          arg("ranks"))
      .def("__repr__", [](const Algorithm& self) {
        return "<Algorithm " + std::string(to_string(self.collective)) + "/" +
               std::string(self.name) + ">";
      });
}

Schedule with_counts(const Schedule& schedule, CountRows send, CountRows receive,
                     std::int64_t element_bytes) {
  const int blocks = schedule.ranks * schedule.ranks;
  if (schedule.collective != unisono::Collective::all_to_all || schedule.chunks % blocks != 0) {
    refuse(title_of(schedule) + " does not support counts; only all_to_all does");
  }
  if (element_bytes < 1 || element_bytes > unisono::kMostElementBytes) {
    refuse("element_bytes must be 1 to 2^30");
  }
  for (const CountRows* rows : {&send, &receive}) {
    for (const auto& row : *rows) {
      if (std::any_of(row.begin(), row.end(), [](std::int64_t count) { return count < 0; })) {
        refuse("a count must be 0 or more");
      }
    }
  }
  Schedule exchange = schedule;
  exchange.counts = {
      .element_bytes = element_bytes, .send = std::move(send), .receive = std::move(receive)};
  const unisono::CountProblem problem = check_counts(exchange.counts);
  if (!problem.message.empty()) {
    refuse(problem.position + ": " + problem.message);
  }
  if (exchange.counts.ranks() != schedule.ranks) {
    refuse("counts for " + std::to_string(exchange.counts.ranks()) +
           " ranks, and the schedule has " + std::to_string(schedule.ranks));
  }
  return exchange;
}

void define_schedule(py::module_& module) {
  using unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Schedule, std::shared_ptr<Schedule>>(
      module, "Schedule", "An algorithm as data: the moves between all ranks. Cannot be changed.")
      .def_property_readonly("collective",
                             [](const Schedule& self) { return to_string(self.collective); })
      .def_readonly("algorithm", &Schedule::algorithm)
      .def_readonly("ranks", &Schedule::ranks)
      .def_readonly("root", &Schedule::root)
      .def_readonly("chunks", &Schedule::chunks)
      .def_readonly("steps", &Schedule::steps)
      .def_readonly("file", &Schedule::file, "The program that made it.")
      .def_property_readonly(
          "phases",
          [](const Schedule& self) {
            std::vector<std::pair<std::string, int>> phases;
            for (const unisono::Phase& phase : self.phases) {
              phases.emplace_back(phase.name, phase.first_step);
            }
            return phases;
          },
          "The name and first step of each phase.")
      .def_readonly("moves", &Schedule::moves, "A copy of the moves, in the order of steps.")
      .def("verify", &unisono::engine::verify_with_sizes, unlocked(),
           "Returns the findings; empty: data flow, hazards and progress are correct, and so are "
           "the sizes if it has counts.")
      .def("verify_in_place", &unisono::verify_in_place, unlocked(),
           "Returns the findings; empty: the schedule also works in place.")
      .def_property_readonly(
          "counts", [](const Schedule& self) { return self.counts.send; },
          "The counts of its all_to_all_v call, [from][to]; empty: blocks are equal.")
      .def("with_counts", &with_counts, arg("send"), arg("receive") = CountRows(),
           arg("element_bytes") = 1,
           "Returns this schedule for one all_to_all_v call: one row per rank with the number of "
           "elements for each receiver. `receive`: the number of elements that each rank expects, "
           "if it differs.")
      .def("show", &show, arg("step") = py::none(), arg("width") = 100,
           "Returns whose data is where, step by step (counted from 1), as printed by `unisono "
           "show`.")
      .def("to_json", py::overload_cast<const Schedule&>(&unisono::to_json))
      .def_static(
          "from_json", [](const std::string& text) { return from_json(text, "the schedule"); },
          arg("text"),
          "Reads a schedule, and raises ValueError for a syntax error; does not verify it.")
      .def(
          "save",
          [](const Schedule& self, const std::filesystem::path& path) {
            // Uses a Python file, whose errors explain the cause.
            const py::object file = py::module_::import("io").attr("open")(path, "wb");
            file.attr("write")(py::bytes(to_json(self)));
            file.attr("close")();
          },
          arg("path"), "Writes a file for the `algorithm=` of a call; its name must end in .json.")
      .def_static(
          "load",
          [](const std::filesystem::path& path) {
            std::ifstream file(path, std::ios::binary);
            if (!file) {
              refuse("cannot read " + path.string());
            }
            return from_json({std::istreambuf_iterator<char>(file), {}}, path.string());
          },
          arg("path"))
      .def("__str__", [](const Schedule& self) { return to_text(self); })
      .def("__repr__", [](const Schedule& self) {
        return "<Schedule " + title_of(self) + ", " + std::to_string(self.ranks) + " ranks, " +
               std::to_string(self.steps) + " steps>";
      });
  py::class_<Builder>(module, "Builder", "Builds a schedule move by move.")
      .def(py::init<const std::string&, int, int, int, std::string>(), arg("collective"),
           arg("ranks"), arg("chunks"), arg("root") = 0, arg("algorithm") = "mine")
      .def("phase", &Builder::phase, arg("name"), "Starts a phase with this name at the next step.")
      .def("step", &Builder::step, "Starts the next step.")
      .def("move", &Builder::move, arg("from_"), arg("to"), arg("chunk"), arg("chunks") = 1,
           py::kw_only(), arg("reduce") = false, arg("source") = "automatic",
           arg("target") = "automatic", "Adds chunks [chunk, chunk + chunks) to the current step.")
      .def("build", &Builder::build,
           "Returns the schedule, after which the builder cannot be used.");
}

}  // namespace

unisono::Collective collective_named(const std::string& text) {
  if (const auto collective = unisono::parse_collective(text)) {
    return *collective;
  }
  std::string names;
  for (int i = 0; i < unisono::kCollectiveCount; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<unisono::Collective>(i)));
  }
  refuse("there is no collective '" + text + "'; there are " + names);
}

Target parse_target(const std::string& text) {
  const std::size_t slash = text.find('/');
  const unisono::Collective collective = collective_named(text.substr(0, slash));
  const std::string name = slash == std::string::npos ? "" : text.substr(slash + 1);
  const Algorithm* algorithm = unisono::find_algorithm(collective, name);
  if (algorithm == nullptr) {
    std::string names;
    for (const Algorithm* other : unisono::catalog()) {
      if (other->collective == plain_form(collective)) {
        names += (names.empty() ? "" : ", ") + std::string(other->name);
      }
    }
    refuse("'" + text + "' is not a COLLECTIVE/ALGORITHM; of " +
           std::string(to_string(collective)) + " there are " + names);
  }
  return {.algorithm = algorithm, .parameters = parse_parameters(*algorithm, name)};
}

unisono::Shape shape_for(const Target& target, int ranks, int root) {
  const unisono::Shape shape{.ranks = ranks, .root = root, .parameters = target.parameters};
  if (ranks < 1 || root < 0 || root >= ranks) {
    refuse(std::to_string(ranks) + " ranks with root " + std::to_string(root) +
           "; give one or more ranks, and a root among them");
  }
  if (!can_serve(*target.algorithm, shape)) {
    refuse(std::string(target.algorithm->name) + " does not support " + std::to_string(ranks) +
           " ranks; it supports only " + std::string(target.algorithm->limits));
  }
  return shape;
}

void define_schedules(py::module_& module) {
  define_parts(module);
  define_schedule(module);
  module.def(
      "catalog",
      [](const std::string& collective) {
        py::list found;
        for (const Algorithm* algorithm : unisono::catalog()) {
          if (collective.empty() ||
              algorithm->collective == plain_form(collective_named(collective))) {
            found.append(py::cast(algorithm, py::return_value_policy::reference));
          }
        }
        return found;
      },
      arg("collective") = "", "Returns all algorithms, or those of one collective.");
  module.def(
      "build",
      [](const std::string& target, int ranks, int root) {
        const Target parsed = parse_target(target);
        if (ranks > kMostRanks) {
          refuse("a schedule of " + std::to_string(ranks) +
                 " ranks; at most 4096 can be written out");
        }
        return build_schedule(*parsed.algorithm, shape_for(parsed, ranks, root));
      },
      arg("target"), arg("ranks"), arg("root") = 0,
      "Returns the schedule of 'COLLECTIVE/ALGORITHM[:PARAMETERS]'.");
  module.def(
      "verify_claims",
      [](const Schedule& schedule) {
        const Algorithm* algorithm =
            unisono::find_algorithm(schedule.collective, schedule.algorithm);
        if (algorithm == nullptr) {
          refuse(title_of(schedule) + " is not in the catalogue, so there are no claims to check");
        }
        return unisono::verify_claims(*algorithm, schedule);
      },
      arg("schedule"),
      "Returns the findings; empty: the schedule keeps the claims of its algorithm.");
  module.def("beside", &unisono::beside, arg("a"), arg("b"),
             "Combines two schedules in the same steps.");
  module.def("then", &unisono::then, arg("a"), arg("b"),
             "Combines two schedules: first a, then b.");
  module.def(
      "sub",
      [](const Schedule& schedule, const std::string& collective, int ranks, int chunks, int root,
         const std::vector<int>& members, int first_chunk, int width, int stride, bool begins) {
        return unisono::sub(schedule, {.collective = collective_named(collective),
                                       .ranks = ranks,
                                       .root = root,
                                       .chunks = chunks,
                                       .members = members,
                                       .first_chunk = first_chunk,
                                       .width = width,
                                       .stride = stride,
                                       .begins = begins});
      },
      arg("schedule"), py::kw_only(), arg("collective"), arg("ranks"), arg("chunks"),
      arg("root") = 0, arg("members"), arg("first_chunk") = 0, arg("width") = 1, arg("stride") = 1,
      arg("begins") = false,
      "Places the schedule on ranks and chunks of a larger one: its rank i becomes members[i], its "
      "chunk c becomes `width` chunks from first_chunk + c*stride on.");
}

}  // namespace unisono_python
