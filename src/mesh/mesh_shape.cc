// Parses mesh shapes and computes with them.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "base/words.h"
#include "unisono/error.hpp"
#include "unisono/parallel/mesh.hpp"

namespace unisono::parallel {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& what, const std::string& next) {
  throw Error(code, "mesh: " + what + "\n" + next);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

const Axis* find_axis(const std::vector<Axis>& axes, std::string_view name) {
  const auto found =
      std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

constexpr const char* kExample = "write it as \"pp=2,dp=2,cp=1,tp=4\"";

int product(const std::vector<Axis>& axes, std::size_t first = 0) {
  std::int64_t all = 1;
  for (std::size_t i = first; i < axes.size(); ++i) {
    all *= axes[i].size;
    if (all > std::numeric_limits<int>::max()) {
      refuse(ErrorCode::config, "the axes have more ranks than an int counts", kExample);
    }
  }
  return static_cast<int>(all);
}

// Parses a product of numbers and known axes.
int read_size(std::string_view text, const std::string& axis, const std::vector<Axis>& known) {
  std::vector<Axis> factors;
  for (const std::string_view factor : split_at(text, '*')) {
    int value = 0;
    if (const Axis* named = find_axis(known, factor)) {
      value = named->size;
    } else {
      const auto [end, error] =
          std::from_chars(factor.data(), factor.data() + factor.size(), value);
      if (error != std::errc() || end != factor.data() + factor.size() || value < 1) {
        refuse(ErrorCode::config,
               "the size " + in_quotes(text) + " of axis \"" + axis +
                   "\" is not a product of positive numbers and of axes before it",
               kExample);
      }
    }
    factors.push_back({.name = {}, .size = value});
  }
  return product(factors);
}

std::vector<Axis> read_axes(std::string_view text, std::vector<Axis>& known) {
  std::vector<Axis> axes;
  for (const std::string_view part : split_at(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(part.substr(0, equals)));
    if (equals == std::string_view::npos || !is_name(name)) {
      refuse(ErrorCode::config, in_quotes(part) + " is not an axis with its size", kExample);
    }
    if (find_axis(known, name) != nullptr) {
      refuse(ErrorCode::config, "axis \"" + name + "\" appears twice",
             "give each axis its own name");
    }
    axes.push_back({.name = name, .size = read_size(trim(part.substr(equals + 1)), name, known)});
    known.push_back(axes.back());
  }
  return axes;
}

// Returns the first of the trailing axes that the folded axes replace: the shortest tail whose
// product reaches theirs.
std::size_t first_under(const std::vector<Axis>& axes, const std::vector<Axis>& folded) {
  const int wanted = product(folded);
  std::string possible;
  for (std::size_t first = axes.size(); first-- > 0;) {
    const int here = product(axes, first);
    if (here == wanted) {
      return first;
    }
    possible += (possible.empty() ? "" : ", ") + std::to_string(here);
  }
  refuse(ErrorCode::config,
         "the axes after the semicolon have " + std::to_string(wanted) +
             " ranks, and the last axes before it have " + possible,
         "these axes cover the last axes before it: make their product one of these numbers");
}

std::string axes_text(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes) {
    text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  }
  return text;
}

}  // namespace

MeshShape MeshShape::parse(std::string_view text, int ranks) {
  const auto sides = split_at(text, ';');
  if (sides.size() > 2) {
    refuse(ErrorCode::config, "there are two semicolons in " + in_quotes(text), kExample);
  }
  std::vector<Axis> known;
  MeshShape shape;
  shape.axes_ = read_axes(sides[0], known);
  shape.ranks_ = product(shape.axes_);
  if (sides.size() == 2) {
    shape.folded_ = read_axes(sides[1], known);
    first_under(shape.axes_, shape.folded_);
  }
  if (ranks != 0 && shape.ranks_ != ranks) {
    refuse(ErrorCode::config,
           "the axes of \"" + shape.text() + "\" have " + std::to_string(shape.ranks_) +
               " ranks, but there are " + std::to_string(ranks),
           "change an axis so that the product is " + std::to_string(ranks));
  }
  return shape;
}

std::string MeshShape::text() const {
  return axes_text(axes_) + (folded_.empty() ? "" : ";" + axes_text(folded_));
}

std::string MeshShape::canonical(std::string_view names) const {
  const auto parts = split_at(names, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (find_axis(axes_, parts[i]) == nullptr && find_axis(folded_, parts[i]) == nullptr) {
      refuse(ErrorCode::usage, "there is no axis " + in_quotes(parts[i]) + " in \"" + text() + "\"",
             "name one of its axes");
    }
    if (std::find(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i), parts[i]) !=
        parts.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse(ErrorCode::usage, "axis " + in_quotes(parts[i]) + " is named twice", "name it once");
    }
  }
  std::string ordered;
  for (const auto* side : {&axes_, &folded_}) {
    for (const Axis& axis : *side) {
      if (std::find(parts.begin(), parts.end(), axis.name) != parts.end()) {
        ordered += (ordered.empty() ? "" : ",") + axis.name;
      }
    }
  }
  return ordered;
}

std::vector<MeshShape::Place> MeshShape::places(std::string_view names) const {
  const std::string ordered = canonical(names);
  const auto wanted = split_at(ordered, ',');
  const bool of_folded = find_axis(folded_, wanted.back()) != nullptr;
  // Axes that the folded axes do not replace still belong to the mesh.
  std::vector<Axis> order = axes_;
  if (of_folded) {
    order.resize(first_under(axes_, folded_));
    order.insert(order.end(), folded_.begin(), folded_.end());
  }
  std::vector<Place> found;
  int stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (std::find(wanted.begin(), wanted.end(), axis->name) != wanted.end()) {
      found.push_back({.size = axis->size, .stride = stride});
    }
    stride *= axis->size;
  }
  if (found.size() != wanted.size()) {
    refuse(ErrorCode::usage, "\"" + ordered + "\" names axes of expert layers and axes under them",
           "name axes of one side of the semicolon");
  }
  std::reverse(found.begin(), found.end());
  return found;
}

void MeshShape::check_rank(int rank) const {
  if (rank < 0 || rank >= ranks_) {
    refuse(ErrorCode::usage, std::to_string(rank) + " is not a rank of " + std::to_string(ranks_),
           "ranks are numbered from 0");
  }
}

int MeshShape::size(std::string_view names) const {
  int all = 1;
  for (const Place& place : places(names)) {
    all *= place.size;
  }
  return all;
}

int MeshShape::coordinate(int rank, std::string_view names) const {
  check_rank(rank);
  int at = 0;
  for (const Place& place : places(names)) {
    at = at * place.size + rank / place.stride % place.size;
  }
  return at;
}

std::vector<int> MeshShape::group(int rank, std::string_view names) const {
  check_rank(rank);
  std::vector<int> members = {rank};
  for (const Place& place : places(names)) {
    members.front() -= rank / place.stride % place.size * place.stride;
  }
  for (const Place& place : places(names)) {
    std::vector<int> more;
    for (const int member : members) {
      for (int i = 0; i < place.size; ++i) {
        more.push_back(member + i * place.stride);
      }
    }
    members = std::move(more);
  }
  return members;
}

std::vector<std::vector<int>> MeshShape::groups(std::string_view names) const {
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < ranks_; ++rank) {
    std::vector<int> members = group(rank, names);
    if (members.front() == rank) {
      all.push_back(std::move(members));
    }
  }
  return all;
}

}  // namespace unisono::parallel
