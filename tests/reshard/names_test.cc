// Name maps: fused and stacked tensors, their parts on each rank, and mistakes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "reshard/elements.h"
#include "unisono/error.hpp"
#include "unisono/parallel/reshard_names.hpp"

namespace unisono::parallel {
namespace {

constexpr const char* kFused = R"({"format": "unisono.names/1", "rules": [
  {"from": ["l.{i}.q.w", "l.{i}.k.w", "l.{i}.v.w"], "to": "l.{i}.qkv.w", "join": 0},
  {"from": ["l.{i}.x.{e}.up", "l.{i}.x.{e}.gate"], "to": "l.{i}.w13", "join": 0, "stack": "e"},
  {"from": ["l.{i}.x.{e}.down"], "to": "l.{i}.w2", "stack": "e"}],
  "leave_out": ["l.{i}.rotary"], "others": "keep"})";

std::string problem_of(const std::string& json) {
  try {
    static_cast<void>(NameMap::parse(json));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string problem_of(const std::vector<NamedTensor>& sources, const char* json = kFused) {
  try {
    static_cast<void>(NameMap::parse(json).apply(sources));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NameMap, JoinsStacksKeepsAndLeavesOut) {
  const std::vector<NamedTensor> sources = {{"l.0.q.w", Dtype::bf16, {8, 4}},
                                            {"l.0.v.w", Dtype::bf16, {2, 4}},
                                            {"l.0.k.w", Dtype::bf16, {2, 4}},
                                            {"l.0.rotary", Dtype::f32, {4}},
                                            {"l.0.x.1.up", Dtype::bf16, {6, 4}},
                                            {"l.0.x.1.gate", Dtype::bf16, {6, 4}},
                                            {"l.0.x.0.up", Dtype::bf16, {6, 4}},
                                            {"l.0.x.0.gate", Dtype::bf16, {6, 4}},
                                            {"l.0.x.0.down", Dtype::bf16, {4, 6}},
                                            {"l.0.x.1.down", Dtype::bf16, {4, 6}},
                                            {"norm", Dtype::f32, {4}}};
  const std::vector<NamedTarget> targets = NameMap::parse(kFused).apply(sources);
  ASSERT_EQ(targets.size(), 4U);
  EXPECT_EQ(targets[0].tensor.name, "l.0.qkv.w");
  EXPECT_EQ(targets[0].tensor.shape, (std::vector<std::size_t>{12, 4}));
  EXPECT_EQ(targets[0].parts[1].source, 2U);  // k before v, in any order of the checkpoint
  EXPECT_EQ(targets[0].parts[1].first, 8U);
  EXPECT_EQ(targets[0].parts[2].first, 10U);
  EXPECT_EQ(targets[1].tensor.shape, (std::vector<std::size_t>{2, 12, 4}));
  EXPECT_EQ(targets[1].parts[3].source, 5U);
  EXPECT_EQ(targets[1].parts[3].index, 1U);
  EXPECT_EQ(targets[1].parts[3].dim, 1U);
  EXPECT_EQ(targets[1].parts[3].first, 6U);
  EXPECT_EQ(targets[2].tensor.shape, (std::vector<std::size_t>{2, 4, 6}));
  EXPECT_EQ(targets[3].tensor.name, "norm");
}

// A rank's parts of a fused tensor have the places in its memory that the layout of the whole
// tensor gives.
TEST(NameMap, ShowsThePartsInARanksMemory) {
  const std::vector<NamedTensor> sources = {{"l.0.q.w", Dtype::i32, {8, 3}},
                                            {"l.0.k.w", Dtype::i32, {4, 3}},
                                            {"l.0.v.w", Dtype::i32, {4, 3}}};
  const NamedTarget target = NameMap::parse(kFused).apply(sources).front();
  const MeshLayout layout = MeshLayout::parse("dp=2,tp=2 on 4-7: tp=shard(0,sections=8+2*4)");
  for (int position = 0; position < 4; ++position) {
    std::vector<std::int32_t> memory(24, -1);
    const Tensor local = Tensor::of(memory, {8, 3});
    for (std::size_t part = 0; part < 3; ++part) {
      const MeshLayout own = layout_of_part(target, part, sources, layout);
      const auto place = local_part(target, part, layout, 4 + position);
      ASSERT_TRUE(place.has_value());
      const Tensor view = view_of_part(*place, local);
      const ElementRanges elements = elements_at(own, sources[part].shape, position);
      EXPECT_EQ(view.shape, shape_of(elements));
      // Writes the row number in the whole target into each row of the view.
      for (std::size_t row = 0; row < view.shape[0]; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
          static_cast<std::int32_t*>(
              view.data)[view.strides[0] * static_cast<std::ptrdiff_t>(row) +
                         view.strides[1] * static_cast<std::ptrdiff_t>(column)] =
              static_cast<std::int32_t>(target.parts[part].first + elements[0][0].first + row);
        }
      }
    }
    std::vector<std::int32_t> rows;
    const ElementRanges held = elements_at(layout, target.tensor.shape, position);
    for (const Range& range : held[0]) {
      for (std::size_t row = range.first; row < range.first + range.count; ++row) {
        rows.insert(rows.end(), 3, static_cast<std::int32_t>(row));
      }
    }
    EXPECT_EQ(memory, rows) << position;
  }
}

// Experts over ep, and their inner widths over etp: a part has only the ranks of its expert.
TEST(NameMap, GivesStackedPartsTheirRanks) {
  std::vector<NamedTensor> sources;
  for (const char* expert : {"0", "1", "2", "3"}) {
    for (const char* name : {"up", "gate"}) {
      sources.push_back({std::string("l.0.x.") + expert + "." + name, Dtype::i32, {4, 2}});
    }
  }
  const NamedTarget target = NameMap::parse(kFused).apply(sources).front();
  const MeshLayout layout =
      MeshLayout::parse("edp=2,ep=2,etp=2: ep=shard(0) etp=shard(1,sections=2*4)");
  const std::size_t gate_of_2 = 5;
  const MeshLayout own = layout_of_part(target, gate_of_2, sources, layout);
  EXPECT_EQ(own.text(), "edp=2,etp=2 on 2-3,6-7: etp=shard(0)");
  std::vector<std::int32_t> memory(std::size_t{2} * 4 * 2);
  std::iota(memory.begin(), memory.end(), 0);
  const Tensor local = Tensor::of(memory, {2, 4, 2});
  const auto place = local_part(target, gate_of_2, layout, 3);
  ASSERT_TRUE(place.has_value());
  const Tensor view = view_of_part(*place, local);
  EXPECT_EQ(view.shape, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(*static_cast<std::int32_t*>(view.data), 4);  // the first expert here, row 2
  EXPECT_FALSE(local_part(target, gate_of_2, layout, 1).has_value());
}

// Copies all parts from ranks with `from` of the sources to ranks with `to` of the target, and
// returns the target's rows: each has the number of its source's row, plus 1000 per source.
std::vector<std::int32_t> rows_after(const NamedTarget& target,
                                     const std::vector<NamedTensor>& sources,
                                     const MeshLayout& from, const MeshLayout& to) {
  const auto held = [](const MeshLayout& layout, const NamedTensor& tensor, int position) {
    return elements_at(layout, tensor.shape, position)[0];
  };
  std::vector<std::int32_t> whole(target.tensor.shape[0], -1);
  for (int position = 0; position < to.mesh.ranks(); ++position) {
    std::vector<std::int32_t> memory(length_of(held(to, target.tensor, position)), -1);
    for (std::size_t part = 0; part < target.parts.size(); ++part) {
      const NamedTensor tensor = tensor_of_part(target.parts[part], sources);
      std::vector<std::int32_t> values(tensor.shape[0], -1);
      const std::size_t source = target.parts[part].source;
      const NamedTarget its = source_of_part(target.parts[part], sources);
      const MeshLayout before = layout_of_part(its, 0, sources, from);
      for (int rank = 0; rank < from.mesh.ranks(); ++rank) {
        std::vector<std::int32_t> own;
        for (const Range& range : held(from, sources[source], rank)) {
          for (std::size_t row = range.first; row < range.first + range.count; ++row) {
            own.push_back(static_cast<std::int32_t>(1000 * source + row));
          }
        }
        const auto place = local_part(its, 0, from, rank);
        const Tensor view = view_of_part(*place, Tensor::of(own, {own.size()}));
        const auto rows = elements_at(before, tensor.shape, rank)[0];
        EXPECT_EQ(view.shape[0], length_of(rows));
        for (std::size_t i = 0; i < view.shape[0]; ++i) {
          values[rows[0].first + i] = static_cast<const std::int32_t*>(view.data)[i];
        }
      }
      const MeshLayout after = layout_of_part(target, part, sources, to);
      const Tensor view = view_of_part(*local_part(target, part, to, position),
                                       Tensor::of(memory, {memory.size()}));
      const auto rows = elements_at(after, tensor.shape, position)[0];
      EXPECT_EQ(view.shape[0], length_of(rows));
      for (std::size_t i = 0; i < view.shape[0]; ++i) {
        static_cast<std::int32_t*>(view.data)[i] = values[rows[0].first + i];
      }
    }
    std::size_t at = 0;
    for (const Range& range : held(to, target.tensor, position)) {
      for (std::size_t row = range.first; row < range.first + range.count; ++row) {
        whole[row] = memory[at++];
      }
    }
  }
  return whole;
}

// 8 query heads in 4 groups, each with a key and a value head; a head has 2 rows.
TEST(NameMap, InterleavesGroupsAndTakesThemApart) {
  std::vector<std::int32_t> interleaved;
  std::vector<std::int32_t> apart(32);
  for (std::int32_t group = 0; group < 4; ++group) {
    for (std::int32_t i = 0; i < 8; ++i) {
      const std::int32_t part = i < 4 ? 0 : i / 2 - 1;  // q, k or v
      const std::int32_t row = part == 0 ? 4 * group + i : 2 * group + i % 2;
      apart[static_cast<std::size_t>((part == 0 ? 0 : 8 + 8 * part) + row)] = 8 * group + i;
      interleaved.push_back(1000 * part + row);
    }
  }
  const NameMap together = NameMap::parse(R"({"format": "unisono.names/1", "rules": [
    {"from": ["q", "k", "v"], "to": "qkv", "join": 0, "groups": 4}]})");
  const NameMap split = NameMap::parse(R"({"format": "unisono.names/1", "rules": [
    {"from": ["qkv"], "to": "fused", "groups": 4, "shares": [2, 1, 1]}]})");
  const std::vector<NamedTensor> three = {
      {"q", Dtype::i32, {16}}, {"k", Dtype::i32, {8}}, {"v", Dtype::i32, {8}}};
  const std::vector<NamedTensor> one = {{"qkv", Dtype::i32, {32}}};
  const NamedTarget qkv = together.apply(three).front();
  const NamedTarget fused = split.apply(one).front();
  EXPECT_EQ(tensor_of_part(fused.parts[1], one).name, "qkv[8:12]");
  const MeshLayout by_group = MeshLayout::parse("tp=2: tp=shard(0)");
  // Ranks of one group share it, and their parts have the lengths of sections.
  const MeshLayout engine = MeshLayout::parse("dp=2,tp=8: tp=shard(0,sections=16+2*8)");
  for (const char* from : {"tp=1", "tp=2: tp=shard(0)", "dp=2,tp=4: tp=shard(0)"}) {
    EXPECT_EQ(rows_after(qkv, three, MeshLayout::parse(from), by_group), interleaved) << from;
    EXPECT_EQ(rows_after(fused, one, MeshLayout::parse(from), engine), apart) << from;
  }
}

// Stages of two chunks with two layers each: layers 0, 1 of chunk 0 of stage 0, and so on.
TEST(NameMap, ComputesNumbers) {
  const NameMap map = NameMap::parse(R"({"format": "unisono.names/1",
    "numbers": {"layer": {"chunk": 4, "stage": 2, "local": 1}, "expert": {"ep": 2, "own": 1}},
    "rules": [{"from": ["s{stage}.c{chunk}.{local}.w"], "to": "layers.{layer}.w"},
              {"from": ["ep{ep}.w{own}"], "to": "experts", "stack": "expert"}]})");
  std::vector<NamedTensor> sources;
  for (const char* name : {"s1.c0.1.w", "s0.c1.0.w", "ep1.w0", "ep0.w1", "ep0.w0", "ep1.w1"}) {
    sources.push_back({name, Dtype::f32, {2}});
  }
  const std::vector<NamedTarget> targets = map.apply(sources);
  ASSERT_EQ(targets.size(), 3U);
  EXPECT_EQ(targets[0].tensor.name, "layers.3.w");
  EXPECT_EQ(targets[1].tensor.name, "layers.4.w");
  EXPECT_EQ(targets[2].tensor.shape, (std::vector<std::size_t>{4, 2}));
  EXPECT_EQ(targets[2].parts[2].source, 2U);  // ep1.w0
  const auto refusal = [&](const char* name) {
    try {
      static_cast<void>(map.apply(std::vector<NamedTensor>{sources[0], {name, Dtype::f32, {2}}}));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("s0.c0.x.w").find("a word of \"numbers\" is no number"), std::string::npos);
  EXPECT_NE(refusal("s0.c0.3.w").find("have one place"), std::string::npos);  // layer 3 again
}

TEST(NameMap, RefusesALayoutThatCutsAcrossParts) {
  const std::vector<NamedTensor> sources = {{"l.0.q.w", Dtype::i32, {8, 3}},
                                            {"l.0.k.w", Dtype::i32, {4, 3}},
                                            {"l.0.v.w", Dtype::i32, {4, 3}}};
  const NamedTarget target = NameMap::parse(kFused).apply(sources).front();
  EXPECT_THROW(
      static_cast<void>(layout_of_part(target, 0, sources, MeshLayout::parse("tp=2: tp=shard(0)"))),
      Error);
  // No part is cut across the other dimension.
  EXPECT_EQ(layout_of_part(target, 0, sources, MeshLayout::parse("tp=3: tp=shard(1)")).text(),
            "tp=3 on 0-2: tp=shard(1)");
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The maps of examples/reshard/ on the names of engines, which engines.txt documents.
TEST(NameMap, HasTheNamesOfEngines) {
  const std::filesystem::path here(UNISONO_RESHARD_TESTS);
  std::istringstream lines(text_of(here / "engines.txt"));
  struct Engine {
    std::string title = {};
    std::vector<NamedTensor> checkpoint = {};
    std::vector<NamedTensor> tensors = {};
  };
  std::vector<Engine> engines;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(1));
    std::string name;
    words >> name;
    if (line.front() == '=') {
      engines.push_back({.title = line.substr(2)});
    } else if (line.front() != '#') {
      NamedTensor tensor{.name = name, .dtype = Dtype::f32};
      for (std::size_t size = 0; words >> size; words.ignore()) {
        tensor.shape.push_back(size);
      }
      (line.front() == '-' ? engines.back().checkpoint : engines.back().tensors).push_back(tensor);
    }
  }
  EXPECT_EQ(engines.size(), 10U);
  for (const Engine& engine : engines) {
    const std::string map = engine.title.substr(0, engine.title.find(' '));
    const auto targets =
        NameMap::parse(text_of(here / "../../examples/reshard" / map)).apply(engine.checkpoint);
    try {
      check_targets(targets, engine.tensors);
    } catch (const Error& error) {
      ADD_FAILURE() << engine.title << ": " << error.what();
    }
  }
}

TEST(NameMapErrors, ListAllNamesThatDoNotFit) {
  const std::string text = problem_of(std::vector<NamedTensor>{{"l.0.q.w", Dtype::f32, {8, 4}},
                                                               {"l.1.q.w", Dtype::f32, {8, 4}},
                                                               {"l.1.k.w", Dtype::f32, {2, 5}},
                                                               {"l.1.v.w", Dtype::f32, {2, 4}},
                                                               {"l.0.x.1.down", Dtype::f32, {4}},
                                                               {"l.0.x.z.down", Dtype::f32, {4}},
                                                               {"l.1.q.w", Dtype::f32, {8, 4}}});
  EXPECT_EQ(text,
            "usage: name map: 5 names or tensors do not fit\n"
            "\"l.0.x.z.down\": {e} is no number\n"
            "\"l.1.q.w\" is there twice\n"
            "\"l.0.q.w\" has no partner \"l.{i}.k.w\", \"l.{i}.v.w\" for \"l.0.qkv.w\"\n"
            "\"l.1.k.w\", f32 [2, 5] does not join \"l.1.q.w\", f32 [8, 4] along dimension 0\n"
            "the stack \"l.0.w2\" has no 0, and has 1");
  EXPECT_EQ(problem_of(std::vector<NamedTensor>{{"a", Dtype::f32, {12}}},
                       R"({"format": "unisono.names/1", "rules": [
                           {"from": ["a"], "to": "b", "groups": 4, "shares": [2, 1, 1]}]})"),
            "usage: name map: 1 names or tensors do not fit\n"
            "\"a\", f32 [12] is not divided along dimension 0 into 4 groups of 4 shares");
  EXPECT_EQ(problem_of(std::vector<NamedTensor>{{"a"}, {"b"}},
                       R"({"format": "unisono.names/1", "rules": []})"),
            "usage: name map: 2 names or tensors do not fit\n\"a\" has no rule\n\"b\" has no rule");
}

TEST(NameMapErrors, CompareWithTheEngine) {
  const std::vector<NamedTensor> sources = {{"a", Dtype::f32, {2}}, {"b", Dtype::f32, {2}}};
  const auto targets = NameMap::parse(kFused).apply(sources);
  EXPECT_NO_THROW(check_targets(targets, sources));
  const std::vector<NamedTensor> engine = {{"a", Dtype::f32, {3}}, {"c", Dtype::f32, {2}}};
  try {
    check_targets(targets, engine);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "usage: name map: 3 tensors do not fit the engine\n"
                 "the engine has \"a\", f32 [3], and the sources make f32 [2]\n"
                 "no source makes \"c\", f32 [2]\n"
                 "the engine has no \"b\", f32 [2]");
  }
}

TEST(NameMapErrors, RefuseFilesThatAreNoMap) {
  for (const char* rule :
       {R"({"from": [], "to": "b"})",
        R"({"from": ["a", "b"], "to": "c"})",
        R"({"from": ["a.{x}"], "to": "b"})",
        R"({"from": ["a"], "to": "b.{x}"})",
        R"({"from": ["a.{x}", "b.{y}"], "to": "c.{x}", "join": 0})",
        R"({"from": ["a", "a"], "to": "c", "join": 0})",
        R"({"from": ["a{x}{y}"], "to": "{x}{y}"})",
        R"({"from": ["a{x"], "to": "b"})",
        R"({"from": ["a{x}"], "to": "b{x}", "stack": "y"})",
        R"({"from": ["a{}"], "to": "b{}"})",
        R"({"from": ["a{x}.{x}"], "to": "{x}"})",
        R"({"from": ["a"], "to": ""})",
        R"({"from": ["a"], "to": "b", "join": 9})",
        R"({"from": ["a"], "to": "b", "groups": 2})",
        R"({"from": ["a"], "to": "b", "shares": [1, 1]})",
        R"({"from": ["a"], "to": "b", "groups": 2, "shares": [1]})",
        R"({"from": ["a", "b"], "to": "c", "join": 0, "groups": 2, "shares": [1, 1]})",
        R"({"from": ["a", "b"], "to": "c", "join": 0, "groups": 0})",
        R"({"from": ["a"], "to": "b", "jion": 0})",
        R"({"from": "a", "to": "b"})"}) {
    EXPECT_NE(problem_of(std::string(R"({"format": "unisono.names/1", "rules": [)") + rule + "]}"),
              "")
        << rule;
  }
  for (const char* numbers :
       {R"({"n": {}})", R"({"n": {"a": 0}})", R"({"n": 3})", R"({"n": {"a": 1}, "a": {"b": 1}})"}) {
    EXPECT_NE(problem_of(std::string(R"({"format": "unisono.names/1", "rules": [], "numbers": )") +
                         numbers + "}"),
              "")
        << numbers;
  }
  EXPECT_NE(problem_of("{"), "");
  EXPECT_NE(problem_of(R"({"format": "unisono.names/2", "rules": []})"), "");
  EXPECT_NE(problem_of(R"({"format": "unisono.names/1", "rules": [], "others": "drop"})"), "");
  EXPECT_EQ(problem_of(R"({"format": "unisono.names/1", "rules": [], "others": "refuse"})"), "");
}

}  // namespace
}  // namespace unisono::parallel
