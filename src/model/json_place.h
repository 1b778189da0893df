// A part of a JSON document that knows where it is, for readers that say what is wrong where.
#pragma once

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "schedule/schedule.h"
#include "unisono/error.hpp"

namespace unisono::model::json_place {

using Json = nlohmann::ordered_json;

// A value that is not what it must be.
struct Fault {
  std::string message;
  std::string position;
};

// A part of the document that knows where it is.
class Place {
 public:
  Place(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw Fault{message, path_.empty() ? "/" : path_};
  }
  // For what somebody else has refused: its first line, without the code before it.
  [[noreturn]] void fail(const Error& error) const {
    const std::string what = error.what();
    const std::size_t begin = what.find(": ") + 2;
    fail(what.substr(begin, what.find('\n') - begin));
  }
  bool has(const std::string& name) const { return json_.is_object() && json_.contains(name); }
  Place operator[](const std::string& name) const {
    if (!json_.is_object()) {
      fail("an object is needed");
    }
    const auto found = json_.find(name);
    if (found == json_.end()) {
      fail("'" + name + "' is missing");
    }
    return {*found, path_ + "/" + name};
  }
  Place operator[](std::size_t index) const {
    return {json_[index], path_ + "/" + std::to_string(index)};
  }
  std::size_t size() const {
    if (!json_.is_array()) {
      fail("a list is needed");
    }
    return json_.size();
  }
  // A list of `size` values.
  Place column(const std::string& name, std::size_t size) const {
    Place values = (*this)[name];
    if (values.size() != size) {
      values.fail("a column of " + std::to_string(size) + " values is needed");
    }
    return values;
  }

  std::string word() const {
    if (!json_.is_string()) {
      fail("a name is needed");
    }
    return json_.get<std::string>();
  }
  double number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>())) {
      fail("a number is needed");
    }
    return json_.get<double>();
  }
  double positive(double least = 1e-100, double most = 1e100) const {
    const double value = number();
    if (value <= 0) {
      fail("a number above 0 is needed");
    }
    if (value < least || value > most) {
      fail(value < least ? "too small a number" : "too large a number");
    }
    return value;
  }
  double not_negative(double most = 1e18) const {
    const double value = number();
    if (value < 0) {
      fail("less than nothing");
    }
    if (value > most) {
      fail("too large a number");
    }
    return value;
  }
  bool truth() const {
    if (!json_.is_boolean()) {
      fail("true or false is needed");
    }
    return json_.get<bool>();
  }
  int ranks() const {
    const double value = number();
    if (value < 1 || value > 1e9 || value != std::floor(value)) {
      fail("no number of ranks");
    }
    return static_cast<int>(value);
  }
  Collective collective() const {
    const auto collective = parse_collective(word());
    if (!collective) {
      fail("unknown collective");
    }
    return *collective;
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string path_;
};

}  // namespace unisono::model::json_place
