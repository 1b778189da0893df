// Writes the Trace Event Format: complete events ("X") with times in microseconds.
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/json_text.h"
#include "network_model/simulator/report.h"

namespace unisono::network_model {
namespace {

// The threads of a rank.
enum class Side : std::uint8_t { sends, receives, computes };
constexpr int kSides = 3;

std::string thread_id(int rank, Side side) {
  return std::to_string(kSides * rank + static_cast<int>(side));
}

// Returns the common beginning of all events; the arguments follow.
std::string event(int rank, Side side, double start_us, double end_us, const std::string& name) {
  return "{\"ph\": \"X\", \"pid\": 0, \"tid\": " + thread_id(rank, side) +
         ", \"ts\": " + json_number(start_us) + ", \"dur\": " + json_number(end_us - start_us) +
         ", \"name\": " + name;
}

std::string message_event(const MessageRecord& record, const std::string& name, bool sending) {
  const int rank = sending ? record.from : record.to;
  const int peer = sending ? record.to : record.from;
  return event(rank, sending ? Side::sends : Side::receives, record.start_us, record.end_us, name) +
         ", \"args\": {\"" + (sending ? "to" : "from") + "\": " + std::to_string(peer) +
         ", \"step\": " + std::to_string(record.step) +
         ", \"bytes\": " + json_number(record.bytes) + "}}";
}

std::string thread_name(int rank, Side side) {
  constexpr std::array<const char*, kSides> kNames = {" sends", " receives", " computes"};
  return "{\"ph\": \"M\", \"pid\": 0, \"tid\": " + thread_id(rank, side) +
         ", \"name\": \"thread_name\", \"args\": {\"name\": \"rank " + std::to_string(rank) +
         kNames[static_cast<std::size_t>(side)] + "\"}}";
}

}  // namespace

std::string chrome_trace(const SimulationResult& result, const Workload& workload) {
  // Omits displayTimeUnit: some readers take it for the unit of all times.
  std::string text = "{\"traceEvents\": [";
  const char* between = "\n";
  const auto add = [&](const std::string& line) {
    text += between + line;
    between = ",\n";
  };
  const auto name_of = [&](int item) {
    return json_string(workload.items[static_cast<std::size_t>(item)].name);
  };
  std::set<std::pair<int, Side>> threads;
  for (const MessageRecord& record : result.records) {
    threads.emplace(record.from, Side::sends);
    threads.emplace(record.to, Side::receives);
  }
  for (const ComputeRecord& record : result.computes) {
    threads.emplace(record.rank, Side::computes);
  }
  for (const auto& [rank, side] : threads) {
    add(thread_name(rank, side));
  }
  for (const MessageRecord& record : result.records) {
    const std::string name = name_of(record.item);
    add(message_event(record, name, true));
    add(message_event(record, name, false));
  }
  for (const ComputeRecord& record : result.computes) {
    add(event(record.rank, Side::computes, record.start_us, record.end_us, name_of(record.item)) +
        "}");
  }
  return text + "\n]}\n";
}

}  // namespace unisono::network_model
