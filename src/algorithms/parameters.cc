#include "algorithms/parameters.h"

#include <algorithm>
#include <charconv>

#include "unisono/error.hpp"

namespace unisono {
namespace {

constexpr int kMost = 1 << 20;

// The parameters by name. A single number counts as a list of one.
struct Row {
  std::string_view name;
  int least;
  int AlgorithmParameters::* number;  // nullptr: `local`
};

constexpr Row kRows[] = {{"radix", 2, &AlgorithmParameters::radix},
                         {"segments", 1, &AlgorithmParameters::segments},
                         {"aggregate", 1, &AlgorithmParameters::aggregate},
                         {"local", 1, nullptr}};

bool is_set(const AlgorithmParameters& parameters, const Row& row) {
  return row.number != nullptr ? parameters.*row.number != 0
                               : parameters.local != AlgorithmParameters::Levels{};
}

bool is_equal(const AlgorithmParameters& a, const AlgorithmParameters& b, const Row& row) {
  return row.number != nullptr ? a.*row.number == b.*row.number : a.local == b.local;
}

void copy(const AlgorithmParameters& from, AlgorithmParameters& to, const Row& row) {
  if (row.number != nullptr) {
    to.*row.number = from.*row.number;
  } else {
    to.local = from.local;
  }
}

[[noreturn]] void refuse(std::string_view what, const std::string& why, const std::string& hint) {
  throw Error(ErrorCode::usage, "\"" + std::string(what) + "\": " + why + "\n" + hint);
}

// Converts "8x4" to 8, 4. Returns an empty list if the text is malformed.
std::vector<int> numbers_of(std::string_view text, int least) {
  std::vector<int> numbers;
  while (true) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < least || number > kMost) {
      return {};
    }
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) {
      return numbers;
    }
    if (text.front() != 'x') {
      return {};
    }
    text.remove_prefix(1);
  }
}

void read_one(std::string_view name, std::string_view item, const AlgorithmParameters& taken,
              AlgorithmParameters& parameters) {
  const std::size_t equals = item.find('=');
  const std::string_view word = item.substr(0, equals);
  const Row* found = nullptr;
  for (const Row& row : kRows) {
    if (row.name == word && is_set(taken, row)) {
      found = &row;
    }
  }
  if (found == nullptr) {
    std::string names;
    for (const std::string_view each : names_of(taken)) {
      names += (names.empty() ? "" : ", ") + std::string(each);
    }
    refuse(name, "there is no parameter \"" + std::string(word) + "\"",
           names.empty() ? std::string(base_name(name)) + " takes none" : "there are: " + names);
  }
  const bool is_list = found->number == nullptr;
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
  const std::vector<int> numbers = numbers_of(value, found->least);
  const std::size_t most = is_list ? parameters.local.size() : 1;
  if (numbers.empty() || numbers.size() > most) {
    refuse(name, std::string(word) + " cannot be \"" + std::string(value) + "\"",
           is_list ? "write for example local=8 or local=8x4, of at most " + std::to_string(most) +
                         " sizes"
                   : "write " + std::string(word) + "=N, with N from " +
                         std::to_string(found->least) + " to " + std::to_string(kMost));
  }
  if (is_set(parameters, *found)) {
    refuse(name, std::string(word) + " is given twice", "give it once");
  }
  if (is_list) {
    std::copy(numbers.begin(), numbers.end(), parameters.local.begin());
  } else {
    parameters.*(found->number) = numbers.front();
  }
}

}  // namespace

std::string_view base_name(std::string_view name) {
  return name.substr(0, name.find(':'));
}

std::vector<std::string_view> names_of(const AlgorithmParameters& parameters) {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) {
    if (is_set(parameters, row)) {
      names.push_back(row.name);
    }
  }
  return names;
}

std::string to_text(const AlgorithmParameters& parameters) {
  std::string text;
  for (const Row& row : kRows) {
    if (!is_set(parameters, row)) {
      continue;
    }
    text += ":" + std::string(row.name) + "=";
    if (row.number != nullptr) {
      text += std::to_string(parameters.*row.number);
      continue;
    }
    for (std::size_t i = 0; i < parameters.local.size() && parameters.local[i] != 0; ++i) {
      text += (i == 0 ? "" : "x") + std::to_string(parameters.local[i]);
    }
  }
  return text;
}

AlgorithmParameters parse_parameters(std::string_view name, const AlgorithmParameters& taken) {
  AlgorithmParameters parameters;
  std::string_view rest = name.substr(base_name(name).size());
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the colon
    const std::string_view item = rest.substr(0, rest.find(':'));
    read_one(name, item, taken, parameters);
    rest.remove_prefix(item.size());
  }
  return parameters;
}

AlgorithmParameters or_defaults(const AlgorithmParameters& parameters,
                                const AlgorithmParameters& defaults) {
  AlgorithmParameters result = defaults;
  for (const Row& row : kRows) {
    if (is_set(parameters, row)) {
      copy(parameters, result, row);
    }
  }
  return result;
}

AlgorithmParameters without_defaults(const AlgorithmParameters& parameters,
                                     const AlgorithmParameters& defaults) {
  AlgorithmParameters result;
  for (const Row& row : kRows) {
    if (is_set(parameters, row) && !is_equal(parameters, defaults, row)) {
      copy(parameters, result, row);
    }
  }
  return result;
}

}  // namespace unisono
