#include "cli/target.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <vector>

#include "cli/failure.h"
#include "cli/wrap.h"
#include "unisono/error.hpp"

namespace unisono::cli {
Collective collective_of(std::string_view word) {
  if (const auto collective = parse_collective(word)) {
    return *collective;
  }
  std::vector<std::string_view> names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    names.push_back(to_string(static_cast<Collective>(i)));
  }
  const Algorithm* named = find_algorithm(Collective::all_reduce, word);
  for (const Algorithm* algorithm : catalog()) {
    named = named == nullptr && algorithm->name == word ? algorithm : named;
  }
  const std::string detail =
      named != nullptr ? fmt::format("did you mean {}/{}?", to_string(named->collective), word)
                       : did_you_mean(word, names);
  throw UsageError(fmt::format("unknown collective '{}'", word), detail, "unisono list");
}

bool is_schedule_file(const std::string& target) {
  struct stat status = {};
  return target.find('.') != std::string::npos || ::stat(target.c_str(), &status) == 0;
}

const Algorithm& algorithm_of(std::string_view target) {
  const std::size_t slash = target.find('/');
  const Collective collective = collective_of(target.substr(0, slash));
  const std::string_view name =
      slash == std::string_view::npos ? std::string_view{} : target.substr(slash + 1);
  if (const Algorithm* found = find_algorithm(collective, name)) {
    return *found;
  }
  std::vector<std::string_view> names;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective == plain_form(collective) &&
        (!is_v_form(collective) || algorithm->allows_v)) {
      names.push_back(algorithm->name);
    }
  }
  const std::string prefix = fmt::format("{}/", to_string(collective));
  std::string detail = name.empty() ? std::string{} : did_you_mean(name, names, prefix);
  if (detail.empty()) {
    detail = fmt::format("one of: {}", fmt::join(names, ", "));
  }
  if (find_algorithm(plain_form(collective), name) != nullptr) {
    throw UsageError(
        fmt::format("{}/{} does not support the v-form", to_string(plain_form(collective)), name),
        detail, fmt::format("unisono list {}", to_string(collective)));
  }
  throw UsageError(name.empty()
                       ? fmt::format("which algorithm of {}?", to_string(collective))
                       : fmt::format("{} has no algorithm '{}'", to_string(collective), name),
                   detail, fmt::format("unisono list {}", to_string(collective)));
}

AlgorithmParameters parameters_of(const Algorithm& algorithm, std::string_view target) {
  try {
    return parse_parameters(algorithm, target);
  } catch (const Error& error) {
    throw UsageError(std::string(error.summary()), std::string(error.hint()),
                     fmt::format("unisono list {}", to_string(algorithm.collective)));
  }
}

Schedule build_checked(const Algorithm& algorithm, Shape shape) {
  if (!can_serve(algorithm, shape)) {
    throw UsageError(fmt::format("{}/{} does not support {}", to_string(algorithm.collective),
                                 full_name(algorithm, shape),
                                 times(static_cast<std::size_t>(shape.ranks), "rank")),
                     fmt::format("it supports only {}", algorithm.limits),
                     fmt::format("unisono list {}", to_string(algorithm.collective)));
  }
  return build_schedule(algorithm, shape);
}

std::string title_of(const Schedule& schedule) {
  return schedule.algorithm.empty()
             ? std::string(to_string(called_form(schedule)))
             : fmt::format("{}/{}", to_string(called_form(schedule)), schedule.algorithm);
}

}  // namespace unisono::cli
