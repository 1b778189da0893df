// Tests checkpoints: saved under one layout and loaded under others, and after a crash.
#include "unisono/parallel/checkpoint.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "parallel/safetensors.h"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {
namespace {

namespace fs = std::filesystem;

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("unisono-checkpoint-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    fs::remove_all(folder_.string() + ".saving");
  }
  std::string folder() const { return folder_.string(); }

 private:
  fs::path folder_;
};

const std::vector<std::size_t> kShape = {3, 5, 4};

// A part, along one dimension, of a tensor whose elements are their indices plus `salt`.
struct Part {
  std::vector<float> values;
  Saved saved;
};
Part part_of(const std::string& name, std::size_t dim, int ranks, int rank, float salt) {
  std::vector<float> whole(60);
  std::iota(whole.begin(), whole.end(), salt);
  const Range range = shard_range(kShape[dim], ranks, rank);
  Part part;
  std::vector<std::size_t> shape = kShape;
  shape[dim] = range.count;
  part.values.resize(60 / kShape[dim] * range.count);
  part.saved = {
      .name = name, .shape = kShape, .part = Tensor::of(part.values, shape), .first = {0, 0, 0}};
  part.saved.first[dim] = range.first;
  copy(Tensor::of(whole, kShape).slice(dim, range.first, range.count), part.saved.part);
  return part;
}

void save(const std::string& folder, int ranks, std::size_t dim, float salt) {
  run_threads(ranks, [&](Communicator& comm) {
    const Part a = part_of("a", dim, ranks, comm.rank(), salt);
    const Part b = part_of("b", 2 - dim, ranks, comm.rank(), salt + 100);
    // One copy of the scalar is enough.
    std::vector<double> scalar = {salt};
    Saved c{.name = "c", .shape = {}, .part = Tensor::of(scalar, {})};
    if (comm.rank() != 0) {
      c.part.data = nullptr;
    }
    const std::vector<Saved> tensors = {a.saved, b.saved, c};
    save_checkpoint(comm, folder, tensors);
  });
}

void expect_loaded(const std::string& folder, int ranks, std::size_t dim, float salt) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto& [name, add] : {std::pair("a", 0.0F), std::pair("b", 100.0F)}) {
      const Part right = part_of(name, dim, ranks, rank, salt + add);
      Part loaded = part_of(name, dim, ranks, rank, 0);
      std::fill(loaded.values.begin(), loaded.values.end(), -1.0F);
      load_checkpoint(folder, {&loaded.saved, 1});
      ASSERT_EQ(loaded.values, right.values) << name << " dim " << dim << " rank " << rank;
    }
  }
}

TEST_F(Checkpoint, IsLoadedUnderAnyOtherLayout) {
  for (const int saved_by : {1, 2, 4}) {
    for (const std::size_t dim : {0U, 1U, 2U}) {
      save(folder(), saved_by, dim, static_cast<float>(saved_by));
      for (const int loaded_by : {1, 2, 3, 5}) {
        for (const std::size_t other : {0U, 1U, 2U}) {
          expect_loaded(folder(), loaded_by, other, static_cast<float>(saved_by));
        }
      }
      EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()),
                saved_by + 1);
    }
  }
  const auto list = list_checkpoint(folder());
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[2].dtype, Dtype::f64);
  EXPECT_EQ(list[0].shape, kShape);
}

TEST_F(Checkpoint, ThatWasThereStaysWholeWhereSavingFails) {
  save(folder(), 2, 0, 1);
  // An unfinished save, as left by a crash.
  fs::create_directories(folder() + ".saving");
  std::ofstream(folder() + ".saving/model-00001-of-00002.safetensors") << "half";
  expect_loaded(folder(), 2, 1, 1);
  save(folder(), 2, 0, 7);
  expect_loaded(folder(), 3, 1, 7);
  EXPECT_FALSE(fs::exists(folder() + ".saving"));
  // The part of one rank does not fit: all ranks fail, and nothing has changed.
  std::atomic<int> failed = 0;
  run_threads(2, [&](Communicator& comm) {
    Part a = part_of("a", 0, 2, comm.rank(), 9);
    a.saved.first[0] += comm.rank() == 1 ? 2U : 0U;
    EXPECT_THROW(save_checkpoint(comm, folder(), {&a.saved, 1}), Error);
    ++failed;
  });
  EXPECT_EQ(failed, 2);
  expect_loaded(folder(), 3, 2, 7);
}

// Parts with copies, sections and gaps, a rank without a part, and a single element.
TEST_F(Checkpoint, IsLoadedByRanksTogether) {
  save(folder(), 3, 0, 5);
  for (const char* layout :
       {"a=5", "a=2,b=2: a=shard(1)", "a=2,b=2 on 4,0,3,1: b=shard(2) a=shard(2)",
        "a=2,b=2: b=shard(1,sections=2+3)", "a=3 on 2-4: a=shard(1,parts=0+5+0)", "a=1 on 3",
        "a=4;b=2,c=2: b=shard(0)"}) {
    run_threads(5, [&](Communicator& comm) {
      const MeshLayout to = MeshLayout::parse(layout);
      std::vector<Loaded> tensors = {{.name = "c", .layout = MeshLayout::parse("a=5")},
                                     {.name = "a", .layout = to},
                                     {.name = "b", .layout = to}};
      double scalar = 0;
      tensors[0].part = Tensor::packed(&scalar, Dtype::f64, {});
      int position = 0;
      while (position < to.mesh.ranks() && to.rank_at(position) != comm.rank()) {
        ++position;
      }
      ElementRanges mine;
      std::vector<std::vector<float>> memory(2);
      if (position < to.mesh.ranks()) {
        mine = elements_at(to, kShape, position);
        for (std::size_t t = 0; t < 2; ++t) {
          memory[t].assign(2 * count_of(mine) + 1, -1);
          tensors[1 + t].part = Tensor::packed(memory[t].data(), Dtype::f32, shape_of(mine));
          for (std::ptrdiff_t& stride : tensors[1 + t].part.strides) {
            stride *= 2;
          }
        }
      }
      load_checkpoint(comm, folder(), tensors);
      EXPECT_EQ(scalar, 5);
      for (std::size_t t = 0; t < 2 && !mine.empty(); ++t) {
        std::size_t at = 0;
        const auto visit = [&](const auto& self, std::size_t dim, std::size_t element) -> void {
          if (dim == kShape.size()) {
            EXPECT_EQ(memory[t][2 * at++], static_cast<float>(element) + (t == 0 ? 5.0F : 105.0F))
                << layout;
            return;
          }
          for (const Range& range : mine[dim]) {
            for (std::size_t i = 0; i < range.count; ++i) {
              self(self, dim + 1, element * kShape[dim] + range.first + i);
            }
          }
        };
        visit(visit, 0, 0);
      }
    });
  }
}

std::size_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string word;
  std::size_t bytes = 0;
  io >> word >> bytes;
  return word == "rchar:" ? bytes : 0;
}

TEST_F(Checkpoint, IsReadOnceByRanksTogether) {
  if (bytes_read() == 0) {
    GTEST_SKIP() << "the kernel does not count bytes";
  }
  constexpr std::size_t kSize = std::size_t{1} << 20U;
  std::vector<float> whole(kSize);
  std::iota(whole.begin(), whole.end(), 0.0F);
  run_threads(1, [&](Communicator& comm) {
    const Saved saved{.name = "w", .shape = {kSize}, .part = Tensor::of(whole, {kSize})};
    save_checkpoint(comm, folder(), {&saved, 1});
  });
  const std::size_t before = bytes_read();
  run_threads(4, [&](Communicator& comm) {
    std::vector<float> values(kSize);
    const Loaded wanted{
        .name = "w", .layout = MeshLayout::parse("a=4"), .part = Tensor::of(values, {kSize})};
    load_checkpoint(comm, folder(), {&wanted, 1});
    EXPECT_EQ(values, whole);
  });
  EXPECT_LT(bytes_read() - before, 5 * kSize);
}

TEST_F(Checkpoint, FailsOnAllRanksWhereOneCannotLoad) {
  save(folder(), 1, 0, 1);
  std::vector<std::string> said(2);
  run_threads(2, [&](Communicator& comm) {
    const auto load = [&](const std::string& from, const std::string& name) {
      std::vector<float> values(60);
      const std::vector<Loaded> tensors = {
          {.name = name, .layout = MeshLayout::parse("a=2"), .part = Tensor::of(values, kShape)}};
      try {
        load_checkpoint(comm, from, tensors);
      } catch (const Error& error) {
        said[static_cast<std::size_t>(comm.rank())] += std::string(to_string(error.code())) + " ";
      }
    };
    load(folder(), "z");
    load(comm.rank() == 0 ? folder() : folder() + "-absent", "a");
  });
  EXPECT_EQ(said[0], "usage resource ");
  EXPECT_EQ(said[1], "usage resource ");
}

std::string error_of(const std::string& folder, const Saved& wanted) {
  try {
    load_checkpoint(folder, {&wanted, 1});
    return "none";
  } catch (const Error& error) {
    return std::string(to_string(error.code()));
  }
}

TEST_F(Checkpoint, SaysWhatIsWrong) {
  save(folder(), 1, 0, 1);
  std::vector<float> values(60);
  Saved wanted{.name = "a", .shape = kShape, .part = Tensor::of(values, kShape)};
  EXPECT_EQ(error_of(folder(), wanted), "none");
  wanted.name = "z";
  EXPECT_EQ(error_of(folder(), wanted), "usage");
  wanted = {.name = "a", .shape = {60}, .part = Tensor::of(values, {60})};
  EXPECT_EQ(error_of(folder(), wanted), "usage");
  EXPECT_EQ(error_of(folder() + "-absent", wanted), "resource");
  const std::string file = folder() + "/model-00001-of-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  wanted = {.name = "a", .shape = kShape, .part = Tensor::of(values, kShape)};
  EXPECT_EQ(error_of(folder(), wanted), "corrupt");
  fs::resize_file(file, 3);
  EXPECT_EQ(error_of(folder(), wanted), "corrupt");
}

TEST(Safetensors, HeadersOfOthersAreRead) {
  // The example of the format's documentation, with the metadata that other writers add.
  const auto contents = read_header(
      R"({"__metadata__":{"format":"pt"},"t":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})",
      8 + 90 + 12);
  ASSERT_TRUE(contents) << contents.message;
  EXPECT_EQ(contents.value->at("t").dtype, Dtype::bf16);
  EXPECT_EQ(contents.value->at("t").bytes, 12U);
  for (const char* bad :
       {R"({"t":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})",
        R"({"t":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})",
        R"({"t":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}})",
        R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "{", "[]"}) {
    EXPECT_FALSE(read_header(bad, 1000)) << bad;
  }
}

}  // namespace
}  // namespace unisono::parallel
