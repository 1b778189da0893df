// The Trace Event Format: complete events ("X") with times in microseconds.
#include <set>
#include <string>
#include <utility>

#include "model/simulator/report.h"
#include "topology/json_value.h"

namespace unisono::model {
namespace {

// Threads of a rank: 2 * rank sends, 2 * rank + 1 receives.
std::string event(const MessageRecord& record, const std::string& name, bool sending) {
  const int rank = sending ? record.from : record.to;
  const int peer = sending ? record.to : record.from;
  return "{\"ph\": \"X\", \"pid\": 0, \"tid\": " + std::to_string(2 * rank + (sending ? 0 : 1)) +
         ", \"ts\": " + json_number(record.start_us) +
         ", \"dur\": " + json_number(record.end_us - record.start_us) + ", \"name\": " + name +
         ", \"args\": {\"" + (sending ? "to" : "from") + "\": " + std::to_string(peer) +
         ", \"step\": " + std::to_string(record.step) +
         ", \"bytes\": " + json_number(record.bytes) + "}}";
}

std::string thread_name(int rank, bool sending) {
  return "{\"ph\": \"M\", \"pid\": 0, \"tid\": " + std::to_string(2 * rank + (sending ? 0 : 1)) +
         ", \"name\": \"thread_name\", \"args\": {\"name\": \"rank " + std::to_string(rank) +
         (sending ? " sends" : " receives") + "\"}}";
}

}  // namespace

std::string chrome_trace(const SimulationResult& result, const Workload& workload) {
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  const char* between = "\n";
  const auto add = [&](const std::string& line) {
    text += between + line;
    between = ",\n";
  };
  std::set<std::pair<int, bool>> threads;
  for (const MessageRecord& record : result.records) {
    threads.emplace(record.from, true);
    threads.emplace(record.to, false);
  }
  for (const auto& [rank, sending] : threads) {
    add(thread_name(rank, sending));
  }
  for (const MessageRecord& record : result.records) {
    const std::string name =
        json_string(workload.items[static_cast<std::size_t>(record.item)].name);
    add(event(record, name, true));
    add(event(record, name, false));
  }
  return text + "\n]}\n";
}

}  // namespace unisono::model
