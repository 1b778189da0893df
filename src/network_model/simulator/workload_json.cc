// Reads the order of a workload's items: blocks, repeats and dependencies.
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/words.h"
#include "network_model/simulator/workload.h"
#include "network_model/simulator/workload_items.h"
#include "topology/topology.h"

namespace unisono::network_model {
namespace {

constexpr std::int64_t kMostPlaces = 50'000'000;
constexpr std::int64_t kMostStreams = 64;

// An entry of a list of items, read once for all its repeats.
struct Entry {
  JsonNode node;
  std::int64_t repeat = 1;
  std::vector<WorkItem> items = {};  // one item per group; they begin together
  std::vector<Entry> block = {};     // or the entries that repeat in sequence
  std::vector<JsonNode> after = {};  // names of items, without duplicates
  std::vector<JsonNode> after_own = {};
};

class WorkloadReader {
 public:
  WorkloadReader(const JsonNode& document, bool written_out, const WorkloadSources& sources)
      : document_(document),
        workload_{.ranks = ranks_of(document)},
        items_(document, workload_.ranks, written_out, sources) {}

  Workload read() && {
    for (const Entry& entry : entries_of(document_.at("items"))) {
      add(entry);
    }
    return std::move(workload_);
  }

 private:
  static int ranks_of(const JsonNode& document) {
    document.allow_only({"format", "ranks", "device", "groups", "items"});
    const JsonNode format = document.at("format");
    if (format.text() != kWorkloadFormat) {
      format.fail("unknown format " + in_quotes(format.text()) + ", this reads " +
                  std::string(kWorkloadFormat));
    }
    return static_cast<int>(document.at("ranks").whole(1, kMostTopologyRanks));
  }

  std::vector<Entry> entries_of(const JsonNode& list) {
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const JsonNode node = list.item(i);
      Entry& entry = entries.emplace_back(Entry{.node = node});
      if (const auto times = node.find("repeat")) {
        entry.repeat = times->whole(1, kMostWorkItems);
      }
      if (const auto block = node.find("items")) {
        node.allow_only({"repeat", "items"});
        entry.block = entries_of(*block);
        if (entry.block.empty()) {
          block->fail("a block needs at least one item");
        }
      } else {
        entry.items = items_of(node);
        entry.after = names_of(node.find("after"));
        entry.after_own = names_of(node.find("after_own"));
      }
    }
    return entries;
  }

  std::vector<WorkItem> items_of(const JsonNode& node) {
    node.allow_only({"name", "compute_us", "flops", "memory_bytes", "collective", "algorithm",
                     "schedule", "bytes", "counts", "element_bytes", "root", "from", "to", "group",
                     "stream", "after", "after_own", "repeat", "items"});
    std::vector<WorkItem> items = items_.read(node);
    const auto stream = node.find("stream");
    const auto name = node.find("name");
    for (WorkItem& item : items) {
      item.stream = stream ? static_cast<int>(stream->whole(0, kMostStreams - 1)) : 0;
      item.name = name ? name->text() : item.name;
      places_of_entries_ += static_cast<std::int64_t>(item.ranks.size());
    }
    check_places(node, places_of_entries_);
    return items;
  }

  void check_places(const JsonNode& node, std::int64_t places) const {
    if (static_cast<std::int64_t>(workload_.items.size()) > kMostWorkItems ||
        places > kMostPlaces) {
      node.fail(kTooManyWorkItems);
    }
  }

  void add(const Entry& entry) {
    const std::vector<int> after = items_named(entry.after);
    const std::vector<int> after_own = items_named(entry.after_own);
    const bool is_named = entry.node.find("name").has_value();
    for (std::int64_t time = 0; time < entry.repeat; ++time) {
      for (const Entry& inner : entry.block) {
        add(inner);
      }
      const std::size_t first = workload_.items.size();
      for (const WorkItem& item : entry.items) {
        places_ += static_cast<std::int64_t>(item.ranks.size() + after.size() + after_own.size());
        WorkItem& added = workload_.items.emplace_back(item);
        check_places(entry.node, places_);
        added.after = after;
        added.after_own = after_own;
      }
      for (std::size_t i = first; is_named && i < workload_.items.size(); ++i) {
        const WorkItem& item = workload_.items[i];
        named_[item.name][{item.stream, item.ranks}] = static_cast<int>(i);
      }
    }
  }

  // Reads one name or a list of names.
  static std::vector<JsonNode> names_of(const std::optional<JsonNode>& after) {
    std::vector<JsonNode> names;
    std::set<std::string_view> met;
    const bool is_list = after && after->is(JsonValue::Kind::array);
    for (std::size_t i = 0; after && i < (is_list ? after->size() : 1); ++i) {
      const JsonNode name = is_list ? after->item(i) : *after;
      if (met.insert(name.text()).second) {
        names.push_back(name);
      }
    }
    return names;
  }

  // Returns all items with these names so far.
  std::vector<int> items_named(const std::vector<JsonNode>& names) const {
    std::vector<int> items;
    for (const JsonNode& name : names) {
      const auto found = named_.find(name.text());
      if (found == named_.end()) {
        name.fail("no item before this one has the name " + in_quotes(name.text()));
      }
      check_places(name, places_ + static_cast<std::int64_t>(items.size() + found->second.size()));
      for (const auto& [who, item] : found->second) {
        items.push_back(item);
      }
    }
    return items;
  }

  // By stream and ranks: the last item with a name, which also ends last, because its ranks take
  // the items of a stream in order.
  using LastOf = std::map<std::pair<int, std::vector<int>>, int>;

  const JsonNode& document_;
  Workload workload_;
  WorkloadItems items_;
  std::map<std::string, LastOf> named_;
  std::int64_t places_of_entries_ = 0;
  std::int64_t places_ = 0;
};

}  // namespace

Parsed<Workload> parse_workload_json(std::string_view text, bool written_out,
                                     const WorkloadSources& sources) {
  return parse_json_as<Workload>(text, [&](const JsonNode& document) {
    return WorkloadReader(document, written_out, sources).read();
  });
}

}  // namespace unisono::network_model
