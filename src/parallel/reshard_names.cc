// Name maps: patterns of names, and the positions of sources in their targets.
#include "unisono/parallel/reshard_names.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/words.h"
#include "reshard/elements.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

constexpr std::string_view kFormat = "unisono.names/1";
constexpr std::size_t kMostRules = 10'000;
constexpr std::int64_t kMostFactor = 1'000'000;  // the limit of groups and shares, too

using Words = std::map<std::string, std::string, std::less<>>;

// Splits off the text before the next {word}, and the word. Returns false if there is none.
bool next_word(std::string_view& pattern, std::string_view& before, std::string_view& word) {
  const std::size_t open = pattern.find('{');
  before = pattern.substr(0, open);
  if (open == std::string_view::npos) {
    return false;
  }
  const std::size_t close = pattern.find('}', open);
  word = pattern.substr(open + 1, close - open - 1);
  pattern.remove_prefix(close + 1);
  return true;
}

using WordSet = std::set<std::string, std::less<>>;

WordSet words_in(std::string_view pattern) {
  WordSet words;
  std::string_view before;
  std::string_view word;
  while (next_word(pattern, before, word)) {
    words.emplace(word);
  }
  return words;
}

// Returns the words of a name that matches the pattern. A word ends at the first occurrence of the
// text that follows it in the pattern; two words are never adjacent.
std::optional<Words> match(std::string_view pattern, std::string_view name) {
  Words words;
  std::string_view before;
  std::string_view word;
  while (next_word(pattern, before, word)) {
    if (!name.starts_with(before)) {
      return std::nullopt;
    }
    name.remove_prefix(before.size());
    const std::string_view after = pattern.substr(0, pattern.find('{'));
    std::size_t end = std::min(name.find('.'), name.size());
    if (!after.empty() && after.front() != '.') {
      end = std::min(name.find(after), end);
    }
    if (end == 0 || !words.emplace(word, name.substr(0, end)).second) {
      return std::nullopt;
    }
    name.remove_prefix(end);
  }
  return name == before ? std::optional(std::move(words)) : std::nullopt;
}

std::string filled(std::string_view pattern, const Words& words) {
  std::string name;
  std::string_view before;
  std::string_view word;
  while (next_word(pattern, before, word)) {
    name += std::string(before) + words.find(word)->second;
  }
  return name + std::string(before);
}

// Reads a pattern from the file.
std::string pattern_of(const JsonNode& node) {
  const std::string& text = node.text();
  if (text.empty()) {
    node.fail("the name is empty");
  }
  std::set<std::string_view> seen;
  bool touches = false;
  for (std::string_view left = text;;) {
    const std::size_t open = left.find_first_of("{}");
    if (open == std::string_view::npos) {
      return text;
    }
    const std::size_t close = left.find('}', open);
    if (left[open] == '}' || close == std::string_view::npos || close == open + 1 ||
        left.substr(open + 1, close - open - 1).find('{') != std::string_view::npos) {
      node.fail(in_quotes(text) + " has a bracket that encloses no word");
    }
    if (touches && open == 0) {
      node.fail(in_quotes(text) + " has two words that touch");
    }
    if (!seen.insert(left.substr(open + 1, close - open - 1)).second) {
      node.fail(in_quotes(text) + " has a word twice");
    }
    left.remove_prefix(close + 1);
    touches = true;
  }
}

[[noreturn]] void refuse_all(const std::string& what, const std::vector<std::string>& problems) {
  std::string text = what;
  for (const std::string& problem : problems) {
    text += "\n" + problem;
  }
  throw Error(ErrorCode::usage, text);
}

std::string described(const NamedTensor& tensor) {
  return in_quotes(tensor.name) + ", " + Tensor::packed(nullptr, tensor.dtype, tensor.shape).text();
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

constexpr std::size_t kNone = ~std::size_t{0};

// Consecutive elements of a source along the joined dimension.
struct SourceSlice {
  std::size_t source = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

// The sources of one target: for each index of the stack (a single one without a stack), each name
// of the rule.
struct Group {
  std::size_t rule = kNone;  // kNone: a name that stays unchanged
  std::map<std::size_t, std::vector<std::size_t>> rows = {};
  Words words = {};
};

// Builds a target if its sources fit each other; otherwise appends the problems.
class Joiner {
 public:
  Joiner(std::span<const NamedTensor> sources, std::vector<std::string>& problems)
      : sources_(sources), problems_(problems) {}

  std::optional<NamedTarget> join(const std::string& name, const Group& group,
                                  const NameRule& rule) {
    const std::size_t before = problems_.size();
    const bool stacks = !rule.stack.empty();
    if (stacks) {
      check_stack(name, group);
    }
    for (const auto& [index, row] : group.rows) {
      check_partners(name, rule.from, index, row, stacks);
    }
    if (problems_.size() > before) {
      return std::nullopt;
    }
    NamedTarget target{.tensor = {.name = name}};
    for (const auto& [index, row] : group.rows) {
      std::vector<std::size_t> shape = sources_[row.front()].shape;
      const bool joins = row.size() > 1 || !rule.shares.empty();
      if (joins) {
        std::size_t first = 0;
        for (const SourceSlice& slice : slices_of(row, rule)) {
          target.parts.push_back({.source = slice.source,
                                  .index = stacks ? std::optional(index) : std::nullopt,
                                  .dim = rule.join + (stacks ? 1 : 0),
                                  .first = first,
                                  .begin = slice.begin,
                                  .count = slice.count});
          first += slice.count;
        }
        if (problems_.size() > before) {
          return std::nullopt;
        }
        shape[rule.join] = first;
        target.sections = sections_of(row, rule);
      } else {
        target.parts.push_back({.source = row.front(),
                                .index = stacks ? std::optional(index) : std::nullopt,
                                .count = shape.empty() ? 1 : shape.front()});
      }
      if (!check_alike(row, shape, rule.join)) {
        return std::nullopt;
      }
      if (stacks) {
        shape.insert(shape.begin(), group.rows.size());
      }
      if (index != group.rows.begin()->first && shape != target.tensor.shape) {
        problems_.push_back("the shapes of " + in_quotes(name) +
                            " differ: " + described(sources_[row.front()]));
        return std::nullopt;
      }
      target.tensor.shape = std::move(shape);
    }
    target.tensor.dtype = sources_[target.parts.front().source].dtype;
    return target;
  }

 private:
  // Returns the slices of a row's sources in the order of the target. Appends a problem for each
  // source that cannot be divided this way.
  std::vector<SourceSlice> slices_of(const std::vector<std::size_t>& row, const NameRule& rule) {
    std::vector<std::size_t> units;  // by source, or by share: elements in each group
    for (const std::size_t source : row) {
      const std::size_t shares =
          rule.shares.empty() ? 1 : std::reduce(rule.shares.begin(), rule.shares.end());
      const NamedTensor& one = sources_[source];
      if (rule.join >= one.shape.size()) {
        problems_.push_back(described(one) + " has no dimension " + std::to_string(rule.join) +
                            " to join along");
        return {};
      }
      if (one.shape[rule.join] % (rule.groups * shares) != 0) {
        problems_.push_back(described(one) + " is not divided along dimension " +
                            std::to_string(rule.join) + " into " + std::to_string(rule.groups) +
                            " groups" +
                            (shares > 1 ? " of " + std::to_string(shares) + " shares" : ""));
        return {};
      }
      units.push_back(one.shape[rule.join] / (rule.groups * shares));
    }
    std::vector<SourceSlice> slices;
    if (rule.shares.empty()) {
      for (std::size_t group = 0; group < rule.groups; ++group) {
        for (std::size_t i = 0; i < row.size(); ++i) {
          slices.push_back({.source = row[i], .begin = group * units[i], .count = units[i]});
        }
      }
      return slices;
    }
    const std::size_t unit = units.front();
    const std::size_t length = sources_[row.front()].shape[rule.join] / rule.groups;
    std::size_t before = 0;
    for (const std::size_t share : rule.shares) {
      for (std::size_t group = 0; group < rule.groups; ++group) {
        slices.push_back(
            {.source = row.front(), .begin = group * length + before, .count = share * unit});
      }
      before += share * unit;
    }
    return slices;
  }

  std::vector<std::size_t> sections_of(const std::vector<std::size_t>& row,
                                       const NameRule& rule) const {
    std::vector<std::size_t> sections;
    for (const std::size_t share : rule.shares) {
      sections.push_back(sources_[row.front()].shape[rule.join] /
                         std::reduce(rule.shares.begin(), rule.shares.end()) * share);
    }
    for (std::size_t i = 0; rule.groups == 1 && i < row.size(); ++i) {
      sections.push_back(sources_[row[i]].shape[rule.join]);
    }
    return sections;
  }

  // Requires the dtype of the first source, and equal lengths except along the joined dimension.
  bool check_alike(const std::vector<std::size_t>& row, const std::vector<std::size_t>& shape,
                   std::size_t dim) {
    const NamedTensor& first = sources_[row.front()];
    for (const std::size_t source : row) {
      const NamedTensor& one = sources_[source];
      std::vector<std::size_t> joined = one.shape;
      if (row.size() > 1 && dim < joined.size()) {
        joined[dim] = shape[dim];
      }
      if (joined != shape || one.dtype != first.dtype) {
        problems_.push_back(described(one) + " does not join " + described(first) +
                            " along dimension " + std::to_string(dim));
        return false;
      }
    }
    return true;
  }

  void check_stack(const std::string& name, const Group& group) {
    std::size_t next = 0;
    for (const auto& [index, row] : group.rows) {
      if (index != next) {
        problems_.push_back("the stack " + in_quotes(name) + " has no " + std::to_string(next) +
                            ", and has " + std::to_string(index));
        return;
      }
      ++next;
    }
  }

  void check_partners(const std::string& name, const std::vector<std::string>& from,
                      std::size_t index, const std::vector<std::size_t>& row, bool stacks) {
    std::string lacking;
    std::string has;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] == kNone) {
        lacking += (lacking.empty() ? "" : ", ") + in_quotes(from[i]);
      } else {
        has = sources_[row[i]].name;
      }
    }
    if (!lacking.empty()) {
      problems_.push_back(in_quotes(has) + " has no partner " + lacking + " for " +
                          in_quotes(name) +
                          (stacks ? " at index " + std::to_string(index) : std::string()));
    }
  }

  std::span<const NamedTensor> sources_;
  std::vector<std::string>& problems_;
};

// Replaces numbers by the words that they are sums of.
WordSet terms_of(const WordSet& words, const NameNumbers& numbers) {
  WordSet all;
  for (const std::string& word : words) {
    const auto number = numbers.find(word);
    if (number == numbers.end()) {
      all.insert(word);
      continue;
    }
    for (const auto& [term, factor] : number->second) {
      all.insert(term);
    }
  }
  return all;
}

// Reads {"layer": {"chunk": 8, "stage": 2, "local": 1}}.
NameNumbers numbers_in(const JsonNode& node) {
  NameNumbers numbers;
  for (std::size_t i = 0; i < node.keys().size(); ++i) {
    const JsonNode terms = node.member(i);
    auto& sum = numbers[node.keys()[i]];
    for (std::size_t k = 0; k < terms.keys().size(); ++k) {
      sum[terms.keys()[k]] = static_cast<std::size_t>(terms.member(k).whole(1, kMostFactor));
    }
    if (sum.empty()) {
      terms.fail("a number needs a word, such as {\"chunk\": 8, \"local\": 1}");
    }
  }
  for (std::size_t i = 0; i < node.keys().size(); ++i) {
    const JsonNode terms = node.member(i);
    for (std::size_t k = 0; k < terms.keys().size(); ++k) {
      if (numbers.contains(terms.keys()[k])) {
        terms.member(k).fail("{" + terms.keys()[k] + "} is a number itself");
      }
    }
  }
  return numbers;
}

void read_groups(const JsonNode& node, NameRule& rule) {
  const auto groups = node.find("groups");
  const auto shares = node.find("shares");
  if (groups) {
    rule.groups = static_cast<std::size_t>(groups->whole(1, kMostFactor));
  }
  for (std::size_t i = 0; shares && i < shares->size(); ++i) {
    rule.shares.push_back(static_cast<std::size_t>(shares->item(i).whole(1, kMostFactor)));
  }
  if (shares && (!groups || rule.from.size() > 1 || rule.shares.size() < 2)) {
    shares->fail(
        "shares divide the groups of one name, such as \"groups\": 8, \"shares\": [4, 1, 1]");
  }
  if (groups && !shares && rule.from.size() == 1) {
    groups->fail("the groups of one name need \"shares\"");
  }
}

// Adds the numbers that are sums of a name's words. Returns false if a word is not a number.
bool add_numbers(const NameNumbers& numbers, Words& words) {
  for (const auto& [name, terms] : numbers) {
    std::size_t sum = 0;
    for (const auto& [word, factor] : terms) {
      const auto text = words.find(word);
      if (text == words.end()) {
        sum = kNone;  // the name lacks this word
        break;
      }
      const std::optional<std::size_t> value = number_in(text->second);
      if (!value || *value > static_cast<std::size_t>(kMostFactor)) {
        return false;
      }
      sum += factor * *value;
    }
    if (sum != kNone) {
      words.insert_or_assign(name, std::to_string(sum));
    }
  }
  return true;
}

}  // namespace

NameMap NameMap::parse(std::string_view json) {
  Parsed<NameMap> parsed = parse_json_as<NameMap>(json, [](const JsonNode& document) {
    NameMap map;
    document.allow_only({"format", "name", "rules", "numbers", "leave_out", "others"});
    if (const JsonNode format = document.at("format"); format.text() != kFormat) {
      format.fail("the format is not " + std::string(kFormat));
    }
    if (const auto numbers = document.find("numbers")) {
      map.numbers_ = numbers_in(*numbers);
    }
    const JsonNode rules = document.at("rules");
    if (rules.size() > kMostRules) {
      rules.fail("more than " + std::to_string(kMostRules) + " rules");
    }
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const JsonNode node = rules.item(i);
      node.allow_only({"from", "to", "join", "groups", "shares", "stack"});
      NameRule rule{.to = pattern_of(node.at("to"))};
      const JsonNode from = node.at("from");
      for (std::size_t k = 0; k < from.size(); ++k) {
        rule.from.push_back(pattern_of(from.item(k)));
      }
      if (rule.from.empty()) {
        from.fail("a rule needs a name");
      }
      if (const auto join = node.find("join")) {
        rule.join = static_cast<std::size_t>(join->whole(0, kMostDims - 1));
      } else if (rule.from.size() > 1) {
        node.fail("several names need \"join\": the dimension along which to join them");
      }
      read_groups(node, rule);
      const WordSet words = words_in(rule.from.front());
      for (std::size_t k = 1; k < rule.from.size(); ++k) {
        if (words_in(rule.from[k]) != words) {
          from.item(k).fail("the names of a rule need the same words in brackets");
        }
        if (std::find(rule.from.begin(), rule.from.begin() + static_cast<std::ptrdiff_t>(k),
                      rule.from[k]) != rule.from.begin() + static_cast<std::ptrdiff_t>(k)) {
          from.item(k).fail("the name is there twice");
        }
      }
      WordSet needed = terms_of(words_in(rule.to), map.numbers_);
      if (const auto stack = node.find("stack")) {
        rule.stack = stack->text();
        for (const std::string& word : terms_of({rule.stack}, map.numbers_)) {
          if (!words.contains(word)) {
            stack->fail("the names have no word {" + word + "}");
          }
          if (!needed.insert(word).second) {
            node.at("to").fail("the target's name has the stack's word {" + word + "}");
          }
        }
      }
      if (needed != words) {
        node.at("to").fail("the target's name needs the words of its sources" +
                           std::string(rule.stack.empty() ? "" : ", without the stack's"));
      }
      map.rules_.push_back(std::move(rule));
    }
    if (const auto left_out = document.find("leave_out")) {
      for (std::size_t i = 0; i < left_out->size(); ++i) {
        map.left_out_.push_back(pattern_of(left_out->item(i)));
      }
    }
    if (const auto others = document.find("others")) {
      if (others->text() != "keep" && others->text() != "refuse") {
        others->fail("is \"keep\" or \"refuse\"");
      }
      map.keeps_others_ = others->text() == "keep";
    }
    return map;
  });
  if (!parsed) {
    throw Error(ErrorCode::config, "name map: " + parsed.message +
                                       (parsed.position.empty() ? "" : "\nat " + parsed.position));
  }
  return std::move(*parsed.value);
}

std::vector<NamedTarget> NameMap::apply(std::span<const NamedTensor> sources) const {
  std::vector<std::string> problems;
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  std::set<std::string_view> names;
  const auto group_of = [&](const std::string& name, std::size_t rule) -> Group* {
    const auto [place, added] = groups.try_emplace(name);
    if (added) {
      place->second.rule = rule;
      order.push_back(name);
    } else if (place->second.rule != rule || rule == kNone) {
      problems.push_back("two rules make " + in_quotes(name));
      return nullptr;
    }
    return &place->second;
  };
  const auto place = [&](std::size_t source) {
    const std::string& name = sources[source].name;
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      for (std::size_t i = 0; i < rules_[r].from.size(); ++i) {
        std::optional<Words> words = match(rules_[r].from[i], name);
        if (!words) {
          continue;
        }
        if (!add_numbers(numbers_, *words)) {
          problems.push_back(in_quotes(name) + ": a word of \"numbers\" is no number");
          return;
        }
        std::size_t index = 0;
        if (!rules_[r].stack.empty()) {
          const std::optional<std::size_t> number = number_in(words->at(rules_[r].stack));
          if (!number) {
            problems.push_back(in_quotes(name) + ": {" + rules_[r].stack + "} is no number");
            return;
          }
          index = *number;
        }
        if (Group* const group = group_of(filled(rules_[r].to, *words), r)) {
          std::vector<std::size_t>& row = group->rows[index];
          row.resize(rules_[r].from.size(), kNone);
          if (row[i] != kNone) {
            problems.push_back(in_quotes(name) + " and " + in_quotes(sources[row[i]].name) +
                               " have one place");
          }
          row[i] = source;
        }
        return;
      }
    }
    if (std::ranges::any_of(left_out_,
                            [&](const auto& one) { return match(one, name).has_value(); })) {
      return;
    }
    if (!keeps_others_) {
      problems.push_back(in_quotes(name) + " has no rule");
    } else if (Group* const group = group_of(name, kNone)) {
      group->rows[0] = {source};
    }
  };
  for (std::size_t source = 0; source < sources.size(); ++source) {
    if (!names.insert(sources[source].name).second) {
      problems.push_back(in_quotes(sources[source].name) + " is there twice");
    } else {
      place(source);
    }
  }
  Joiner joiner(sources, problems);
  std::vector<NamedTarget> targets;
  for (const std::string& name : order) {
    const Group& group = groups.at(name);
    const NameRule kept{};
    if (auto target = joiner.join(name, group, group.rule == kNone ? kept : rules_[group.rule])) {
      targets.push_back(std::move(*target));
    }
  }
  if (!problems.empty()) {
    refuse_all("name map: " + std::to_string(problems.size()) + " names or tensors do not fit",
               problems);
  }
  return targets;
}

void check_targets(std::span<const NamedTarget> targets, std::span<const NamedTensor> engine) {
  std::vector<std::string> problems;
  std::map<std::string_view, const NamedTensor*> made;
  for (const NamedTarget& target : targets) {
    made.emplace(target.tensor.name, &target.tensor);
  }
  for (const NamedTensor& wanted : engine) {
    const auto found = made.find(wanted.name);
    if (found == made.end()) {
      problems.push_back("no source makes " + described(wanted));
      continue;
    }
    if (found->second->shape != wanted.shape || found->second->dtype != wanted.dtype) {
      problems.push_back(
          "the engine has " + described(wanted) + ", and the sources make " +
          Tensor::packed(nullptr, found->second->dtype, found->second->shape).text());
    }
    made.erase(found);
  }
  for (const NamedTarget& target : targets) {
    if (made.contains(target.tensor.name)) {
      problems.push_back("the engine has no " + described(target.tensor));
    }
  }
  if (!problems.empty()) {
    refuse_all("name map: " + std::to_string(problems.size()) + " tensors do not fit the engine",
               problems);
  }
}

}  // namespace unisono::parallel
