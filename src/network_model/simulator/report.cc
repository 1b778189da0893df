#include "network_model/simulator/report.h"

#include <algorithm>
#include <numeric>

#include "base/json_text.h"

namespace unisono::network_model {
namespace {

std::string field(const char* name, double value) {
  return std::string("\"") + name + "\": " + json_number(value);
}

// Writes an array with one row per line; `make(i)` returns row i.
template <typename Make>
std::string rows(const char* name, std::size_t count, const Make& make) {
  std::string text = std::string("  \"") + name + "\": [";
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "\n    {" : ",\n    {") + make(i) + "}";
  }
  return text + (count == 0 ? "]" : "\n  ]");
}

std::string critical_text(const SimulationResult& result) {
  const CriticalPath& path = result.critical;
  return std::string("  \"critical_path\": {\"messages\": ") + std::to_string(path.messages) +
         ", " + field("latency_us", path.latency_us) + ", " +
         field("transfer_us", path.transfer_us) + ", " + field("reduce_us", path.reduce_us) + ", " +
         field("compute_us", path.compute_us) + "}";
}

std::string message_text(const MessageRecord& record) {
  return "\"item\": " + std::to_string(record.item) +
         ", \"phase\": " + std::to_string(record.phase) +
         ", \"step\": " + std::to_string(record.step) +
         ", \"from\": " + std::to_string(record.from) + ", \"to\": " + std::to_string(record.to) +
         ", " + field("bytes", record.bytes) + ", " + field("start_us", record.start_us) + ", " +
         field("end_us", record.end_us);
}

}  // namespace

std::string link_name(const Topology& topology, std::size_t link) {
  const Link& found = topology.links[link];
  return topology.devices[static_cast<std::size_t>(found.from)].name + "->" +
         topology.devices[static_cast<std::size_t>(found.to)].name;
}

std::vector<std::size_t> busiest_links(const SimulationResult& result) {
  std::vector<std::size_t> order(result.links.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  order.erase(std::remove_if(order.begin(), order.end(),
                             [&](std::size_t link) { return result.links[link].bytes <= 0; }),
              order.end());
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double x = result.links[a].full_us;
    const double y = result.links[b].full_us;
    return x != y ? x > y : a < b;
  });
  return order;
}

std::string report_json(const SimulationResult& result, const Workload& workload,
                        const Topology* topology, const ReportOptions& options) {
  std::string text = "{\n  \"schema\": \"unisono.simulation/1\",\n  ";
  text += field("time_us", result.total_us) +
          ",\n  \"protocol\": " + (!result.protocol ? "null" : json_string(result.protocol->name)) +
          ",\n  " + field("messages", result.messages) + ",\n  " +
          field("messages_played", result.simulated) +
          ",\n  \"links_shared\": " + (result.shared_links ? "true" : "false") + ",\n" +
          critical_text(result) + ",\n";
  const std::size_t path = result.critical_records.size();
  const std::size_t shown = std::min(path, options.most_messages);
  text += rows("critical_messages", shown,
               [&](std::size_t i) {
                 const int record = result.critical_records[path - shown + i];
                 return message_text(result.records[static_cast<std::size_t>(record)]);
               }) +
          ",\n";
  text += rows("items", std::min(workload.items.size(), options.most_ranks),
               [&](std::size_t i) {
                 return "\"name\": " + json_string(workload.items[i].name) + ", " +
                        field("end_us", result.item_end_us[i]);
               }) +
          ",\n";
  text += rows("ranks", std::min(result.ranks.size(), options.most_ranks),
               [&](std::size_t i) {
                 const RankTimes& rank = result.ranks[i];
                 return "\"rank\": " + std::to_string(i) + ", " +
                        field("moving_us", rank.moving_us) + ", " +
                        field("computing_us", rank.computing_us) + ", " +
                        field("starting_us", rank.starting_us) + ", " +
                        field("waiting_us", rank.waiting_us);
               }) +
          ",\n";
  const std::vector<std::size_t> busiest = busiest_links(result);
  text += "  \"links_used\": " + std::to_string(busiest.size()) + ",\n";
  text += rows("links", topology == nullptr ? 0 : std::min(busiest.size(), options.most_links),
               [&](std::size_t i) {
                 const LinkUse& use = result.links[busiest[i]];
                 return "\"link\": " + json_string(link_name(*topology, busiest[i])) + ", " +
                        field("bytes", use.bytes) + ", " + field("busy_us", use.busy_us) + ", " +
                        field("full_us", use.full_us);
               });
  return text + "\n}\n";
}

}  // namespace unisono::network_model
