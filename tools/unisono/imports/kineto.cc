// Traces of PyTorch's profiler (Kineto): events with a category, a time and arguments.
//
// On a device, the duration of a kernel is the duration of the collective. Newer versions of
// PyTorch write the name of the collective into the kernel's arguments. For older versions the name
// comes from the CPU's annotation ("nccl:all_reduce"), whose duration is only the duration of the
// launch. A CPU backend has no kernels; its annotations last as long as the collective.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/words.h"
#include "imports/imports.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr const char* kComputing = "kernels that compute";
constexpr const char* kNoKernel =
    "launches without a kernel: the profiler records kernels with ProfilerActivity.CUDA";

struct Span {
  double start = 0;  // us
  double end = 0;
};

// An event of the trace that belongs to a collective.
struct Event {
  const json* arguments = nullptr;
  Span span = {};
  std::string name = {};     // of the collective, or else of the kernel
  std::string backend = {};  // of an annotation
  std::pair<std::string, std::string> thread = {};
  bool is_taken = false;
};

// A call of the CUDA runtime, which launches a kernel.
struct Launch {
  std::pair<std::string, std::string> thread = {};
  double at = 0;
  std::int64_t correlation = 0;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char sign) {
    return sign >= 'A' && sign <= 'Z' ? static_cast<char>(sign - 'A' + 'a') : sign;
  });
  return text;
}

std::int64_t id_in(const json& arguments, const char* key) {
  return static_cast<std::int64_t>(std::clamp(number(member(arguments, key), -1), -1.0, 1e15));
}

// `kernel`: the name in lower case. Such as ncclDevKernel_..., rcclGenericKernel, hcom_...
bool is_of_collectives(const std::string& kernel) {
  return kernel.find("nccl") != std::string::npos || kernel.find("rccl") != std::string::npos ||
         kernel.find("msccl") != std::string::npos || kernel.find("oneccl") != std::string::npos ||
         kernel.find("hccl") != std::string::npos || kernel.starts_with("hcom_") ||
         kernel.find("cncl") != std::string::npos;
}

// By its name in small letters: multimem_all_reduce_kernel, vllm::cross_device_reduce_1stage, ...
// A reduction within one kernel (warpAllReduce) has a letter before such a word.
bool is_of_another_library(const std::string& kernel) {
  constexpr std::string_view kWords[] = {"all_reduce",     "allreduce",   "all_gather",
                                         "allgather",      "all_to_all",  "alltoall",
                                         "reduce_scatter", "nvshmem",     "deep_ep",
                                         "multimem",       "userbuffers", "cross_device_reduce"};
  return std::ranges::any_of(kWords, [&kernel](std::string_view word) {
    const std::size_t at = kernel.find(word);
    return at != std::string::npos && (at == 0 || kernel[at - 1] < 'a' || kernel[at - 1] > 'z');
  });
}

// Returns true if a kernel of that name can be part of the collective.
bool can_be_of(const std::string& kernel, const std::string& collective) {
  const std::string name = lower(kernel);
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  if (has("allreduce")) {
    return collective == "all_reduce" || collective == "barrier";
  }
  if (has("reducescatter")) {
    return collective == "reduce_scatter";
  }
  if (has("allgather")) {
    return collective == "all_gather";
  }
  if (has("sendrecv")) {
    return collective != "all_reduce" && collective != "barrier" && collective != "reduce";
  }
  return true;  // a broadcast may be part of other collectives; other names are unknown
}

// The events of a trace, by kind.
struct Events {
  std::vector<Event> described = {};  // kernels that name their collective
  std::vector<Event> bare = {};       // NCCL kernels that do not name it
  std::vector<Event> launched = {};   // annotations of a device backend, on the CPU
  std::vector<Event> on_device = {};  // the same on the device
  std::vector<Event> on_cpu = {};     // annotations of a CPU backend
  std::vector<Launch> launches = {};  // sorted
  std::int64_t computing = 0;
  std::int64_t others = 0;      // kernels of other libraries that communicate
  std::string other_name = {};  // of the first of them
  std::int64_t timeless = 0;    // kernels and annotations without a time or a duration
  std::int64_t parameters = 0;  // parameters of calls, on the CPU (record_param_comms)
};

bool is_cpu_backend(std::string_view name) {
  return name == "gloo" || name == "mpi" || name == "ucc" || name == "unisono";
}

// "gloo:all_reduce" -> {"gloo", "all_reduce"}; empty: it is not an annotation of a backend.
std::pair<std::string, std::string> backend_and_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos || colon == 0) {
    return {};
  }
  std::string backend = name.substr(0, colon);
  std::string call = name.substr(colon + 1);
  const bool is_known = is_device_backend(backend) || is_cpu_backend(backend) ||
                        !collective_named_by_torch(call).empty();
  return is_known ? std::pair(std::move(backend), std::move(call))
                  : std::pair<std::string, std::string>();
}

void add_event(const json& event, double base_us, Events& events) {
  const std::string category = lower(text(member(event, "cat")));
  const bool is_timed = member(event, "ts").is_number() && member(event, "dur").is_number();
  if (!is_timed && (category == "kernel" || category.ends_with("user_annotation"))) {
    ++events.timeless;
    return;
  }
  const double start = base_us + number(member(event, "ts"), 0);
  Event made{.arguments = &member(event, "args"),
             .span = {.start = start, .end = start + number(member(event, "dur"), 0)},
             .thread = {member(event, "pid").dump(), member(event, "tid").dump()}};
  if (category == "kernel") {
    const json& said = member(*made.arguments, "Collective name");
    made.name = said.is_string() ? text(said) : text(member(event, "name"));
    if (said.is_string()) {
      events.described.push_back(std::move(made));
    } else if (is_of_collectives(lower(made.name))) {
      events.bare.push_back(std::move(made));
    } else if (is_of_another_library(lower(made.name))) {
      events.other_name = events.others++ == 0 ? made.name : events.other_name;
    } else {
      ++events.computing;
    }
  } else if (category.ends_with("_runtime") || category.ends_with("_driver")) {
    events.launches.push_back(
        {.thread = made.thread, .at = start, .correlation = id_in(*made.arguments, "correlation")});
  } else if (category == "user_annotation" || category == "gpu_user_annotation") {
    std::tie(made.backend, made.name) = backend_and_name(text(member(event, "name")));
    if (!made.name.empty()) {
      (category.starts_with("gpu")       ? events.on_device
       : is_device_backend(made.backend) ? events.launched
                                         : events.on_cpu)
          .push_back(std::move(made));
    }
  } else if (category == "cpu_op" && text(member(event, "name")) == "record_param_comms") {
    ++events.parameters;
  }
}

Events events_of(const json& document) {
  const double base_us = number(member(document, "baseTimeNanoseconds"), 0) / 1000;
  Events events;
  for (const json& event : member(document, "traceEvents")) {
    if (text(member(event, "ph")) == "X") {
      add_event(event, base_us, events);
    }
  }
  for (std::vector<Event>* list : {&events.bare, &events.launched, &events.on_device}) {
    std::ranges::stable_sort(*list, {}, [](const Event& event) { return event.span.start; });
  }
  std::ranges::sort(events.launches, {},
                    [](const Launch& launch) { return std::tie(launch.thread, launch.at); });
  return events;
}

// Finds the kernels of each annotation by three kinds of evidence: launches during the annotation,
// a common number, and their order if there are as many kernels as annotations.
class Matcher {
 public:
  explicit Matcher(Events& events) : events_(events), spans_(events.launched.size()) {
    for (std::size_t i = 0; i < events.bare.size(); ++i) {
      by_correlation_.emplace(id_in(*events.bare[i].arguments, "correlation"), i);
      by_external_.emplace(id_in(*events.bare[i].arguments, "External id"), i);
    }
    by_correlation_.erase(-1);
    by_external_.erase(-1);
  }

  // An empty entry: the annotation has no kernel.
  std::vector<std::optional<Span>> match() {
    for (std::size_t i = 0; i < events_.launched.size(); ++i) {
      match_launches(i);
    }
    for (std::size_t i = 0; i < events_.launched.size(); ++i) {
      if (!spans_[i]) {
        take_those(i, by_external_, id_in(*events_.launched[i].arguments, "External id"));
      }
    }
    match_order();
    return spans_;
  }
  bool is_by_order() const { return is_by_order_; }

 private:
  using Kernels = std::multimap<std::int64_t, std::size_t>;

  void take_those(std::size_t annotation, const Kernels& kernels, std::int64_t id) {
    const auto [first, last] = kernels.equal_range(id);
    for (auto kernel = first; kernel != last; ++kernel) {
      take(annotation, kernel->second);
    }
  }
  void take(std::size_t annotation, std::size_t kernel) {
    Event& event = events_.bare[kernel];
    if (event.is_taken) {
      return;
    }
    event.is_taken = true;
    std::optional<Span>& span = spans_[annotation];
    span = span ? Span{.start = std::min(span->start, event.span.start),
                       .end = std::max(span->end, event.span.end)}
                : event.span;
  }

  void match_launches(std::size_t annotation) {
    const Event& event = events_.launched[annotation];
    auto launch =
        std::ranges::lower_bound(events_.launches, std::tie(event.thread, event.span.start), {},
                                 [](const Launch& one) { return std::tie(one.thread, one.at); });
    for (; launch != events_.launches.end() && launch->thread == event.thread &&
           launch->at <= event.span.end;
         ++launch) {
      take_those(annotation, by_correlation_, launch->correlation);
    }
  }

  void match_order() {
    std::vector<std::size_t> annotations;
    std::vector<std::size_t> kernels;
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      if (!spans_[i]) {
        annotations.push_back(i);
      }
    }
    for (std::size_t i = 0; i < events_.bare.size(); ++i) {
      if (!events_.bare[i].is_taken) {
        kernels.push_back(i);
      }
    }
    if (annotations.size() != kernels.size()) {
      return;
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Event& annotation = events_.launched[annotations[i]];
      const Event& kernel = events_.bare[kernels[i]];
      if (kernel.span.start < annotation.span.start ||
          !can_be_of(kernel.name, collective_named_by_torch(annotation.name))) {
        return;
      }
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      take(annotations[i], kernels[i]);
      is_by_order_ = true;
    }
  }

  Events& events_;
  std::vector<std::optional<Span>> spans_;
  Kernels by_correlation_;
  Kernels by_external_;
  bool is_by_order_ = false;
};

// Fills an ImportedRank.
class Reader {
 public:
  Reader(const json& document, const std::string& path) {
    rank_.path = path;
    rank_.account = {.source = "PyTorch's profiler", .unit = "event"};
    const json& info = member(document, "distributedInfo");
    rank_.rank = rank_said(member(info, "rank"), path);
    if (!member(info, "rank").is_number()) {
      rank_.account.assume(
          fmt::format("{} is from rank {}, according to its name: it has no distributedInfo", path,
                      rank_.rank));
    }
    rank_.host = text(member(document, "host_name"));
    read_groups(info);
  }

  ImportedRank read(Events events) {
    rank_.account.leave_out(events.computing, kComputing);
    rank_.account.leave_out(
        events.others,
        fmt::format("kernels of other libraries that communicate, whose sizes the trace does not "
                    "know: {}",
                    in_quotes(events.other_name)));
    rank_.account.leave_out(events.timeless, "without a time or a duration");
    std::map<std::int64_t, double> launched_at;
    for (const Launch& launch : events.launches) {
      launched_at.emplace(launch.correlation, launch.at);
    }
    launched_at.erase(-1);
    for (const Event& kernel : events.described) {
      const auto launch = launched_at.find(id_in(*kernel.arguments, "correlation"));
      add_kernel(kernel, launch == launched_at.end() ? kUnknownUs : launch->second);
    }
    const auto launched = static_cast<std::int64_t>(events.launched.size());
    if (!events.described.empty()) {
      rank_.account.leave_out(launched, "launches of kernels that name their collective");
    } else if (!events.on_device.empty()) {
      add_spans_of_device(events);
      rank_.account.leave_out(launched, "launches that the device's annotations already show");
      events.bare.clear();  // they are part of those annotations
    } else {
      add_launched(events);
    }
    rank_.account.leave_out(std::ranges::count(events.bare, false, &Event::is_taken),
                            "kernels of NCCL or a relative that the trace does not connect to a "
                            "call: of a CUDA graph, or recorded without ProfilerActivity.CPU");
    for (const Event& event : events.on_cpu) {
      add_annotation(event, event.span);
      if (!is_cpu_backend(event.backend)) {
        rank_.account.assume(
            fmt::format("{} is a CPU backend, because no other backend has this name: its "
                        "annotations span its calls",
                        in_quotes(event.backend)));
      }
    }
    if (launched == 0 && events.described.empty()) {
      rank_.account.leave_out(events.parameters, events.on_cpu.empty()
                                                     ? kNoKernel
                                                     : "parameters of calls (record_param_comms)");
    }
    finish_calls(rank_);
    return std::move(rank_);
  }

 private:
  void read_groups(const json& info) {
    constexpr double kMostOfWorld = 1e6;
    const int size =
        static_cast<int>(std::clamp(number(member(info, "world_size"), 0), 0.0, kMostOfWorld));
    const json& groups = member(info, "pg_config");
    const bool has_default = std::ranges::any_of(
        groups, [](const json& group) { return text(member(group, "pg_desc")) == "default_pg"; });
    for (const json& group : groups) {
      std::string name = text(member(group, "pg_name"));
      std::vector<int> ranks = ranks_in(member(group, "ranks"));
      // If no group is marked as the default group, it is the first group with all ranks.
      const bool is_all = !ranks.empty() && static_cast<int>(ranks.size()) == size;
      const bool is_world = text(member(group, "pg_desc")) == "default_pg" ||
                            (!has_default && is_all && !rank_.groups.contains("world"));
      if (is_world) {
        world_name_ = std::exchange(name, "world");
      }
      if (!name.empty() && !ranks.empty()) {
        rank_.groups[name] = std::move(ranks);
      }
    }
    if (!rank_.groups.contains("world")) {
      std::vector<int>& all = rank_.groups["world"];
      for (int i = 0; i < size; ++i) {
        all.push_back(i);
      }
    }
  }

  // Empty: unknown.
  std::string group_of(const json& arguments) {
    std::string name = text(member(arguments, "Process Group Name"));
    const bool is_default = text(member(arguments, "Process Group Description")) == "default_pg";
    if (name.empty() || name == world_name_ || is_default) {
      return "world";
    }
    if (rank_.groups.contains(name)) {
      return name;
    }
    std::vector<int> ranks = ranks_in(member(arguments, "Process Group Ranks"));
    const double size = number(member(arguments, "Group size"), static_cast<double>(ranks.size()));
    if (!ranks.empty() && static_cast<double>(ranks.size()) == size) {
      rank_.groups[name] = std::move(ranks);
      return name;
    }
    const bool is_all = size > 0 && size == static_cast<double>(rank_.groups["world"].size());
    return is_all && rank_.groups.size() == 1 ? "world" : "";
  }

  // Returns a call of the event's collective and group. If the event has none, counts it as left
  // out and returns nullptr.
  ImportedCall* add(const Event& event, const Span& span, const std::string& backend) {
    const std::string collective = known_collective(event.name, rank_);
    if (collective.empty()) {
      return nullptr;
    }
    const std::string group = group_of(*event.arguments);
    if (group.empty()) {
      rank_.account.leave_out(1, "of groups whose members the trace does not list");
      return nullptr;
    }
    const auto size = static_cast<double>(rank_.groups[group].size());
    if (size > 0 && number(member(*event.arguments, "Group size"), size) != size) {
      rank_.account.leave_out(1, "whose group size contradicts the list of the group's members");
      return nullptr;
    }
    return &rank_.calls.emplace_back(ImportedCall{.group = group,
                                                  .collective = collective,
                                                  .start_us = span.start,
                                                  .end_us = span.end,
                                                  .backend = backend});
  }

  void set_size(ImportedCall& call, const TorchType& type, double count) {
    note_type(type, rank_.account);
    call.dtype = type.name;
    call.bytes = count * type.bytes;
  }

  void add_kernel(const Event& event, double issued_us) {
    ImportedCall* const call = add(event, event.span, "nccl");
    if (call == nullptr) {
      return;
    }
    const json& arguments = *event.arguments;
    const double in = number(member(arguments, "In msg nelems"), 0);
    set_size(*call, type_named_by_torch(text(member(arguments, "dtype"))),
             in < 0 ? in : std::max(in, number(member(arguments, "Out msg nelems"), 0)));
    call->sequence = sequence_of(member(arguments, "Seq"));
    call->issued_us = issued_us;
  }

  void add_launched(Events& events) {
    Matcher matcher(events);
    const std::vector<std::optional<Span>> spans = matcher.match();
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (spans[i]) {
        ImportedCall* const call = add_annotation(events.launched[i], *spans[i]);
        if (call != nullptr) {
          call->issued_us = events.launched[i].span.start;
        }
      } else {
        rank_.account.leave_out(1, kNoKernel);
      }
    }
    if (matcher.is_by_order()) {
      rank_.account.assume("NCCL kernels belong to launches in their order");
    }
  }

  // The annotations on the CPU contain the sizes.
  void add_spans_of_device(const Events& events) {
    std::map<std::string, std::vector<const Event*>> on_cpu;
    for (const Event& event : events.launched) {
      on_cpu[event.name].push_back(&event);
    }
    std::map<std::string, std::size_t> count;
    for (const Event& event : events.on_device) {
      ++count[event.name];
    }
    std::map<std::string, std::size_t> next;
    for (const Event& event : events.on_device) {
      const std::vector<const Event*>& same = on_cpu[event.name];
      const std::size_t place = next[event.name]++;
      add_annotation(same.size() == count[event.name] ? *same[place] : event, event.span);
    }
  }

  // Returns nullptr, and counts the event as left out, if it is not a call.
  ImportedCall* add_annotation(const Event& event, const Span& span) {
    ImportedCall* const call = add(event, span, event.backend);
    if (call == nullptr) {
      return nullptr;
    }
    const json& arguments = *event.arguments;
    const bool says_group = !text(member(arguments, "Process Group Name")).empty();
    rank_.has_groups = rank_.has_groups && (says_group || rank_.groups.size() < 2);
    rank_.has_sizes = false;  // unless record_shapes was set
    // all_gather and gather are recognised by the bytes that a rank sends.
    const bool is_part = call->collective == "all_gather" || call->collective == "gather";
    const std::size_t ranks = std::max<std::size_t>(1, rank_.groups[call->group].size());
    set_size(
        *call, first_type(member(arguments, "Input type")),
        elements(member(arguments, "Input Dims")) * (is_part ? static_cast<double>(ranks) : 1.0));
    return call;
  }

  ImportedRank rank_;
  std::string world_name_;
};

}  // namespace

bool is_device_backend(std::string_view name) {
  return name == "nccl" || name == "xccl" || name == "rccl" || name == "hccl" || name == "cncl";
}

ImportedRank read_kineto(const json& document, const std::string& path) {
  return Reader(document, path).read(events_of(document));
}

}  // namespace unisono::cli
