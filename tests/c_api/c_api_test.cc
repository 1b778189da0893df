// Aspects of the C interface that the C program cannot check: equality of its words with those of
// the C++ interface, structs of other versions, and behaviour with threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unisono/reshard.h"
#include "unisono/unisono.h"
#include "unisono/unisono.hpp"

namespace unisono {
namespace {

unisono_comm_t connect_alone() {
  unisono_connect_options_t options = UNISONO_CONNECT_OPTIONS_INIT;
  options.rank = 0;
  options.size = 1;
  unisono_comm_t comm = nullptr;
  EXPECT_EQ(unisono_connect(&options, &comm), UNISONO_SUCCESS) << unisono_last_error();
  return comm;
}

TEST(CApi, DtypesAreThoseOfCpp) {
  const std::vector<std::pair<unisono_dtype_t, const char*>> names = {
      {UNISONO_I8, "i8"},         {UNISONO_U8, "u8"},     {UNISONO_I32, "i32"},
      {UNISONO_U32, "u32"},       {UNISONO_I64, "i64"},   {UNISONO_U64, "u64"},
      {UNISONO_F16, "f16"},       {UNISONO_BF16, "bf16"}, {UNISONO_F8E4M3, "f8e4m3"},
      {UNISONO_F8E5M2, "f8e5m2"}, {UNISONO_F32, "f32"},   {UNISONO_F64, "f64"},
      {UNISONO_BOOL, "bool"}};
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kDtypeCount));
  for (const auto& [value, name] : names) {
    EXPECT_EQ(to_string(static_cast<Dtype>(value)), name);
    EXPECT_EQ(unisono_dtype_bytes(value), size_of(static_cast<Dtype>(value)));
  }
}

TEST(CApi, OpsAreThoseOfCpp) {
  const std::vector<std::pair<unisono_op_t, const char*>> names = {
      {UNISONO_SUM, "sum"},  {UNISONO_PROD, "prod"}, {UNISONO_MIN, "min"},
      {UNISONO_MAX, "max"},  {UNISONO_AVG, "avg"},   {UNISONO_BAND, "band"},
      {UNISONO_BOR, "bor"},  {UNISONO_BXOR, "bxor"}, {UNISONO_LAND, "land"},
      {UNISONO_LOR, "lor"},  {UNISONO_LXOR, "lxor"}, {UNISONO_PREMUL_SUM, "premul_sum"},
      {UNISONO_USER, "user"}};
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kReduceOpCount));
  for (const auto& [value, name] : names) {
    EXPECT_EQ(to_string(static_cast<ReduceOp>(value)), name);
  }
}

TEST(CApi, CollectivesAreThoseOfCpp) {
  const std::vector<std::pair<unisono_collective_t, const char*>> names = {
      {UNISONO_BROADCAST, "broadcast"},
      {UNISONO_SCATTER, "scatter"},
      {UNISONO_GATHER, "gather"},
      {UNISONO_REDUCE, "reduce"},
      {UNISONO_ALL_REDUCE, "all_reduce"},
      {UNISONO_ALL_GATHER, "all_gather"},
      {UNISONO_REDUCE_SCATTER, "reduce_scatter"},
      {UNISONO_ALL_TO_ALL, "all_to_all"},
      {UNISONO_BARRIER, "barrier"},
      {UNISONO_SCATTER_V, "scatter_v"},
      {UNISONO_GATHER_V, "gather_v"},
      {UNISONO_ALL_GATHER_V, "all_gather_v"},
      {UNISONO_REDUCE_SCATTER_V, "reduce_scatter_v"},
      {UNISONO_ALL_TO_ALL_V, "all_to_all_v"},
      {UNISONO_SCAN, "scan"},
      {UNISONO_EXCLUSIVE_SCAN, "exclusive_scan"}};
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kCollectiveCount));
  for (const auto& [value, name] : names) {
    EXPECT_EQ(to_string(static_cast<Collective>(value)), name);
  }
}

TEST(CApi, ResultsAreTheErrorCodesOfCpp) {
  const std::vector<std::pair<unisono_result_t, const char*>> names = {
      {UNISONO_SUCCESS, "success"},     {UNISONO_USAGE, "usage"},
      {UNISONO_CONFIG, "config"},       {UNISONO_CONNECTION, "connection"},
      {UNISONO_PEER_LOST, "peer_lost"}, {UNISONO_TIMEOUT, "timeout"},
      {UNISONO_MISMATCH, "mismatch"},   {UNISONO_ABORTED, "aborted"},
      {UNISONO_CORRUPT, "corrupt"},     {UNISONO_RESOURCE, "resource"},
      {UNISONO_INTERNAL, "internal"},   {UNISONO_EVICTED, "evicted"}};
  ASSERT_EQ(names.size(), 12U);
  for (const auto& [value, name] : names) {
    EXPECT_STREQ(unisono_result_name(value), name);
  }
}

TEST(CApi, DefaultsAreThoseOfCpp) {
  const unisono_connect_options_t c = UNISONO_CONNECT_OPTIONS_INIT;
  const ConnectOptions cpp;
  EXPECT_EQ(c.rank, cpp.rank);
  EXPECT_EQ(c.size, cpp.size);
  EXPECT_EQ(c.connect_timeout_ms, cpp.connect_timeout_ms);
  EXPECT_EQ(c.timeout_ms, cpp.timeout_ms);
  EXPECT_EQ(c.job, nullptr);
  EXPECT_EQ(c.token, nullptr);
  EXPECT_EQ(c.file, nullptr);
  EXPECT_EQ(c.algorithm, nullptr);
  EXPECT_EQ(c.profile, nullptr);

  const unisono_call_t call = UNISONO_CALL_INIT;
  const Call same;
  EXPECT_EQ(static_cast<Collective>(call.collective), same.collective);
  EXPECT_EQ(static_cast<Dtype>(call.dtype), same.dtype);
  EXPECT_EQ(static_cast<ReduceOp>(call.op), same.reduction.op);
  EXPECT_EQ(call.factor, same.reduction.factor);
  EXPECT_EQ(call.root, same.root);
  EXPECT_EQ(call.timeout_ms, same.timeout_ms);
  EXPECT_EQ(call.algorithm, nullptr);
}

// A program that was built for an older header knows fewer members.
TEST(CApi, AShorterStructKeepsDefaults) {
  unisono_comm_t comm = connect_alone();
  float in = 3.0F;
  float out = 0.0F;
  unisono_call_t call = UNISONO_CALL_INIT;
  call.collective = UNISONO_ALL_REDUCE;
  call.dtype = UNISONO_F32;
  call.in = &in;
  call.out = &out;
  call.count = 1;
  call.algorithm = "no such algorithm";
  EXPECT_EQ(unisono_run(&call, comm), UNISONO_USAGE);
  call.struct_size = offsetof(unisono_call_t, algorithm);
  EXPECT_EQ(unisono_run(&call, comm), UNISONO_SUCCESS) << unisono_last_error();
  EXPECT_EQ(out, 3.0F);
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
}

// A program that was built for a newer header: it works while it does not use new members.
TEST(CApi, ALongerStructMustBeZeroBehindWhatIsKnown) {
  struct Newer {
    unisono_connect_options_t known = UNISONO_CONNECT_OPTIONS_INIT;
    long added = 0;
  };
  Newer options;
  options.known.struct_size = sizeof(Newer);
  options.known.rank = 0;
  options.known.size = 1;
  unisono_comm_t comm = nullptr;
  EXPECT_EQ(unisono_connect(&options.known, &comm), UNISONO_SUCCESS) << unisono_last_error();
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
  options.added = 1;
  EXPECT_EQ(unisono_connect(&options.known, &comm), UNISONO_USAGE);
  EXPECT_EQ(comm, nullptr);
  EXPECT_STREQ(unisono_last_error(),
               (std::string("usage: the struct has members that this library does not know\nthe "
                            "program was built for a newer unisono than ") +
                unisono_version())
                   .c_str());
}

// In a struct that the library fills, members unknown to an older program stay untouched, and
// members unknown to the library become zero.
TEST(CApi, StructsAreFilledAsFarAsTheProgramKnowsThem) {
  unisono_comm_t comm = connect_alone();
  ASSERT_EQ(unisono_barrier(comm), UNISONO_SUCCESS);
  unisono_statistics_t older = UNISONO_STATISTICS_INIT;
  older.struct_size = offsetof(unisono_statistics_t, moving_s);
  older.moving_s = -1;
  older.skew[23] = 77;
  EXPECT_EQ(unisono_statistics("barrier", comm, &older, nullptr), UNISONO_SUCCESS);
  EXPECT_EQ(older.calls, 1U);
  EXPECT_EQ(older.moving_s, -1);
  EXPECT_EQ(older.skew[23], 77U);
  EXPECT_EQ(older.struct_size, offsetof(unisono_statistics_t, moving_s));
  struct Newer {
    unisono_statistics_t known = UNISONO_STATISTICS_INIT;
    long added = 5;
  };
  Newer newer;
  newer.known.struct_size = sizeof(Newer);
  EXPECT_EQ(unisono_statistics("barrier", comm, &newer.known, nullptr), UNISONO_SUCCESS);
  EXPECT_EQ(newer.known.calls, 1U);
  EXPECT_EQ(newer.known.struct_size, sizeof(Newer));
  EXPECT_EQ(newer.added, 0);
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
}

// The entries of a list have the size that the program was built with.
TEST(CApi, ListsOfLongerStructs) {
  struct Newer {
    unisono_reshard_tensor_t known = UNISONO_RESHARD_TENSOR_INIT;
    long added = 0;
  };
  unisono_comm_t comm = connect_alone();
  Newer tensors[2];
  for (Newer& tensor : tensors) {
    tensor.known.struct_size = sizeof(Newer);
    tensor.known.name = &tensor == tensors ? "a" : "b";
    tensor.known.from = tensor.known.to = "tp=1";
  }
  unisono_reshard_t reshard = nullptr;
  EXPECT_EQ(unisono_reshard_create(&tensors[0].known, 2, comm, &reshard), UNISONO_SUCCESS)
      << unisono_last_error();
  unisono_reshard_part_t part = UNISONO_RESHARD_PART_INIT;
  EXPECT_EQ(unisono_reshard_get_part(1, 1, reshard, &part), UNISONO_SUCCESS);
  EXPECT_EQ(part.bytes, sizeof(float));
  EXPECT_EQ(unisono_reshard_free(&reshard), UNISONO_SUCCESS);

  tensors[1].added = 1;
  EXPECT_EQ(unisono_reshard_create(&tensors[0].known, 2, comm, &reshard), UNISONO_USAGE);
  tensors[1].known.struct_size = 0;
  EXPECT_EQ(unisono_reshard_create(&tensors[0].known, 2, comm, &reshard), UNISONO_USAGE);
  EXPECT_STREQ(unisono_last_error(),
               "usage: entry 1 has struct_size 0, and entry 0 has 64\nstart each entry from "
               "UNISONO_RESHARD_TENSOR_INIT");
  tensors[0].known.struct_size = sizeof(Newer) - 1;
  EXPECT_EQ(unisono_reshard_create(&tensors[0].known, 2, comm, &reshard), UNISONO_USAGE);
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
}

TEST(CApi, EachThreadHasItsOwnText) {
  EXPECT_EQ(unisono_barrier(nullptr), UNISONO_USAGE);
  const std::string mine = unisono_last_error();
  std::string before;
  std::string after;
  std::thread([&] {
    before = unisono_last_error();
    EXPECT_EQ(unisono_plan_start(nullptr), UNISONO_USAGE);
    after = unisono_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after, mine);
  EXPECT_EQ(unisono_last_error(), mine);
}

TEST(CApi, ALongTextIsCutNotLost) {
  unisono_comm_t comm = connect_alone();
  const std::string name(10'000, 'x');
  unisono_call_t call = UNISONO_CALL_INIT;
  call.algorithm = name.c_str();
  EXPECT_EQ(unisono_run(&call, comm), UNISONO_USAGE);
  EXPECT_EQ(std::strlen(unisono_last_error()), 4095U);
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
}

// Requests, plans and regions keep the objects that they need alive.
TEST(CApi, TheCommunicatorMayBeFreedFirst) {
  unisono_comm_t comm = connect_alone();
  float in = 2.0F;
  float out = 0.0F;
  unisono_call_t call = UNISONO_CALL_INIT;
  call.collective = UNISONO_ALL_REDUCE;
  call.dtype = UNISONO_F32;
  call.in = &in;
  call.out = &out;
  call.count = 1;
  unisono_plan_t plan = nullptr;
  unisono_request_t request = nullptr;
  unisono_region_t region = nullptr;
  ASSERT_EQ(unisono_plan(&call, comm, &plan), UNISONO_SUCCESS);
  ASSERT_EQ(unisono_allocate(100, comm, &region), UNISONO_SUCCESS);
  ASSERT_EQ(unisono_plan_start_async(plan, &request), UNISONO_SUCCESS);
  EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
  EXPECT_EQ(unisono_wait(&request, -1), UNISONO_SUCCESS);
  EXPECT_EQ(out, 2.0F);
  in = 5.0F;
  EXPECT_EQ(unisono_plan_start(plan), UNISONO_SUCCESS);
  EXPECT_EQ(out, 5.0F);
  std::memset(unisono_region_address(region), 1, unisono_region_bytes(region));
  EXPECT_EQ(unisono_region_bytes(region), 100U);
  EXPECT_EQ(unisono_region_free(&region), UNISONO_SUCCESS);
  EXPECT_EQ(unisono_plan_free(&plan), UNISONO_SUCCESS);
}

// Ranks as threads, some in C and one in C++, in one world.
TEST(CApi, RanksOfBothInterfacesMeet) {
  constexpr int kRanks = 3;
  const std::string job = "c-api-test-" + std::to_string(getpid());
  std::array<float, kRanks> sums = {};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      float& sum = sums.at(static_cast<std::size_t>(rank));
      const auto mine = static_cast<float>(rank + 1);
      if (rank == 0) {
        ConnectOptions options;
        options.rank = rank;
        options.size = kRanks;
        options.job = job;
        auto comm = Communicator::connect(options);
        comm.all_reduce(std::span(&mine, 1), std::span(&sum, 1), unisono::sum);
        return;
      }
      unisono_connect_options_t options = UNISONO_CONNECT_OPTIONS_INIT;
      options.rank = rank;
      options.size = kRanks;
      options.job = job.c_str();
      unisono_comm_t comm = nullptr;
      EXPECT_EQ(unisono_connect(&options, &comm), UNISONO_SUCCESS) << unisono_last_error();
      EXPECT_EQ(unisono_all_reduce(&mine, &sum, 1, UNISONO_F32, UNISONO_SUM, comm), UNISONO_SUCCESS)
          << unisono_last_error();
      EXPECT_EQ(unisono_comm_free(&comm), UNISONO_SUCCESS);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  EXPECT_EQ(sums, (std::array<float, kRanks>{6.0F, 6.0F, 6.0F}));
}

}  // namespace
}  // namespace unisono
