#include "case.h"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "algorithms/catalog.h"

namespace unisono::testing {
namespace {

constexpr std::string_view kMemories[] = {"private", "allocated", "adopted"};
constexpr std::string_view kForms[] = {"run", "async", "plan", "plan_async"};

using Values = std::vector<std::string>;

Values split_values(const std::string& text) {
  Values values;
  std::stringstream stream(text);
  for (std::string value; std::getline(stream, value, ',');) {
    values.push_back(value);
  }
  return values;
}

template <std::size_t N>
std::size_t index_of(const std::string_view (&words)[N], const std::string& word) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == word) {
      return i;
    }
  }
  throw std::runtime_error("unknown word \"" + word + "\"");
}

// One parsed line; the values of all keys are multiplied out later.
struct Family {
  Collective collective = Collective::barrier;
  std::string algorithm;
  std::map<std::string, Values> values;

  Values of(const std::string& key, const Values& otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
};

Family parse_family(std::string_view line) {
  static const std::set<std::string> kKeys = {"n",    "dtype",  "op",   "root", "count", "inplace",
                                              "gaps", "memory", "call", "skew", "seed"};
  std::istringstream stream{std::string(line)};
  std::string word;
  Family family;
  stream >> word;
  const auto collective = parse_collective(word);
  if (!collective.has_value()) {
    throw std::runtime_error("no collective \"" + word + "\"");
  }
  family.collective = *collective;
  stream >> family.algorithm;
  while (stream >> word) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (!kKeys.contains(key)) {
      throw std::runtime_error("unknown key \"" + key + "\" in: " + std::string(line));
    }
    family.values[key] =
        equals == std::string::npos ? Values{"1"} : split_values(word.substr(equals + 1));
  }
  return family;
}

Values algorithms_of(const Family& family, int ranks) {
  if (family.algorithm != "*") {
    return {family.algorithm == "auto" ? "" : family.algorithm};
  }
  Values names;
  for (const Algorithm* algorithm : catalog()) {
    if (find_algorithm(family.collective, algorithm->name) == algorithm &&
        can_serve(*algorithm, {.ranks = ranks})) {
      names.emplace_back(algorithm->name);
    }
  }
  return names;
}

std::vector<Dtype> dtypes_of(const Family& family) {
  std::vector<Dtype> dtypes;
  for (const std::string& word : family.of("dtype", {"f32"})) {
    for (int i = 0; i < kDtypeCount; ++i) {
      if (word == "all" || word == to_string(static_cast<Dtype>(i))) {
        dtypes.push_back(static_cast<Dtype>(i));
      }
    }
  }
  return dtypes;
}

std::vector<ReduceOp> ops_of(const Family& family, Dtype dtype) {
  if (!has_op(family.collective)) {
    return {ReduceOp::sum};
  }
  std::vector<ReduceOp> ops;
  for (const std::string& word : family.of("op", {"sum"})) {
    for (int i = 0; i < kReduceOpCount; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      if (defined(family.collective, dtype, op) && (word == "all" || word == to_string(op))) {
        ops.push_back(op);
      }
    }
  }
  return ops;
}

std::vector<int> roots_of(const Family& family, int ranks) {
  if (!has_root(family.collective)) {
    return {0};
  }
  std::vector<int> roots;
  for (const std::string& word : family.of("root", {"0"})) {
    if (word == "all") {
      for (int rank = 0; rank < ranks; ++rank) {
        roots.push_back(rank);
      }
    } else {
      roots.push_back(word == "last" ? ranks - 1 : std::stoi(word) % ranks);
    }
  }
  return roots;
}

// Replaces every case by one case for each of `values`.
template <typename Apply>
void multiply(std::vector<Case>& cases, const Values& values, Apply apply) {
  std::vector<Case> all;
  for (const Case& one : cases) {
    for (const std::string& value : values) {
      all.push_back(one);
      apply(all.back(), value);
    }
  }
  cases = std::move(all);
}

bool is_prefix(Collective collective) {
  return collective == Collective::scan || collective == Collective::exclusive_scan;
}

}  // namespace

bool has_op(Collective collective) {
  return collective == Collective::reduce || collective == Collective::all_reduce ||
         collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_v ||
         is_prefix(collective);
}

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::scatter || collective == Collective::gather ||
         collective == Collective::scatter_v || collective == Collective::gather_v;
}

bool is_v(Collective collective) {
  return collective == Collective::scatter_v || collective == Collective::gather_v ||
         collective == Collective::all_gather_v || collective == Collective::reduce_scatter_v ||
         collective == Collective::all_to_all_v;
}

bool is_vector(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::all_reduce || is_prefix(collective);
}

bool defined(Collective collective, Dtype dtype, ReduceOp op) {
  const bool is_float = dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f8e4m3 ||
                        dtype == Dtype::f8e5m2 || dtype == Dtype::f32 || dtype == Dtype::f64;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::max:
      return true;
    case ReduceOp::user:  // its function here is addition
      return dtype == Dtype::u32 || dtype == Dtype::u64;
    case ReduceOp::avg:
      return dtype != Dtype::boolean && !is_prefix(collective);
    case ReduceOp::premul_sum:
      return dtype != Dtype::boolean;
    default:
      return !is_float;
  }
}

std::vector<Case> parse_cases(std::string_view line) {
  if (line.find_first_not_of(" \t") == std::string_view::npos || line.front() == '#') {
    return {};
  }
  const Family family = parse_family(line);
  std::vector<Case> cases;
  for (const std::string& ranks : family.of("n", {"2"})) {
    const int n = std::stoi(ranks);
    for (const std::string& algorithm : algorithms_of(family, n)) {
      for (const Dtype dtype : dtypes_of(family)) {
        for (const ReduceOp op : ops_of(family, dtype)) {
          for (const int root : roots_of(family, n)) {
            cases.push_back({.collective = family.collective,
                             .algorithm = algorithm,
                             .ranks = n,
                             .dtype = dtype,
                             .op = op,
                             .root = root});
          }
        }
      }
    }
  }
  multiply(cases, family.of("count", {"1"}),
           [](Case& one, const std::string& value) { one.count = std::stoull(value); });
  multiply(cases, family.of("inplace", {"0"}),
           [](Case& one, const std::string& value) { one.in_place = value == "1"; });
  multiply(cases, family.of("gaps", {"0"}),
           [](Case& one, const std::string& value) { one.gaps = value == "1"; });
  multiply(cases, family.of("memory", {"private"}), [](Case& one, const std::string& value) {
    one.memory = static_cast<Memory>(index_of(kMemories, value));
  });
  multiply(cases, family.of("call", {"run"}), [](Case& one, const std::string& value) {
    one.form = static_cast<Form>(index_of(kForms, value));
  });
  multiply(cases, family.of("skew", {"0"}),
           [](Case& one, const std::string& value) { one.skew = std::stoull(value); });
  multiply(cases, family.of("seed", {"1"}),
           [](Case& one, const std::string& value) { one.seed = std::stoull(value); });
  return cases;
}

std::string to_line(const Case& one) {
  std::string line(to_string(one.collective));
  line += " " + (one.algorithm.empty() ? std::string("auto") : one.algorithm);
  line += " n=" + std::to_string(one.ranks) + " dtype=" + std::string(to_string(one.dtype));
  if (has_op(one.collective)) {
    line += " op=" + std::string(to_string(one.op));
  }
  if (has_root(one.collective)) {
    line += " root=" + std::to_string(one.root);
  }
  line += " count=" + std::to_string(one.count);
  line += one.in_place ? " inplace" : "";
  line += one.gaps ? " gaps" : "";
  if (one.memory != Memory::plain) {
    line += " memory=" + std::string(kMemories[static_cast<std::size_t>(one.memory)]);
  }
  if (one.form != Form::run) {
    line += " call=" + std::string(kForms[static_cast<std::size_t>(one.form)]);
  }
  line += one.skew != 0 ? " skew=" + std::to_string(one.skew) : "";
  return line + " seed=" + std::to_string(one.seed);
}

}  // namespace unisono::testing
