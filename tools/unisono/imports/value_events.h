// Documents as a sequence of events, so that a reader need not hold a large document as a whole.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unisono::cli {

// Receives a document's events, from read_json() or read_pickle(). A method that returns false ends
// the reading. Texts remain valid until the reading ends; keys, only during the call.
struct ValueSink {
  virtual ~ValueSink() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool number(double value) = 0;
  virtual bool text(std::string_view value) = 0;
  virtual bool start_object() = 0;
  virtual bool key(std::string_view key) = 0;
  virtual bool end_object() = 0;
  virtual bool start_array() = 0;
  virtual bool end_array() = 0;
  // Returns true if the next value does not count: the reader sends no events for it.
  virtual bool skips_next() = 0;
};

// Makes one value of its events. Containers may nest at any depth: nothing here recurses.
class ValueBuilder {
 public:
  // The value must outlive its events.
  void begin(nlohmann::json& value) {
    root_ = &value;
    open_.clear();
  }
  void add(nlohmann::json scalar) { slot() = std::move(scalar); }
  void open(nlohmann::json container) {
    nlohmann::json& place = slot();
    place = std::move(container);
    open_.push_back(&place);
  }
  void key(std::string_view key) { key_ = key; }
  void close() { open_.pop_back(); }

 private:
  nlohmann::json& slot() {
    if (open_.empty()) {
      return *root_;
    }
    nlohmann::json& parent = *open_.back();
    return parent.is_array() ? parent.emplace_back() : parent[key_];
  }

  nlohmann::json* root_ = nullptr;
  std::vector<nlohmann::json*> open_;  // an open container is the last item of its parent
  std::string key_;
};

}  // namespace unisono::cli
