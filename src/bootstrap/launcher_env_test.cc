// Tests resolve() with the environments that launchers set.
#include "bootstrap/launcher_env.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>

#include "base/unique_fd.h"
#include "bootstrap/local_world.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

using Env = std::map<std::string, std::string, std::less<>>;

ConnectOptions resolved(const Env& env, const ConnectOptions& options = {}) {
  return resolve(options, [&env](std::string_view name) {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string refusal(const Env& env, const ConnectOptions& options = {}) {
  try {
    resolved(env, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    return error.what();
  }
  return "accepted";
}

void expect_ranks(const ConnectOptions& options, int rank, int size) {
  EXPECT_EQ(options.rank, rank);
  EXPECT_EQ(options.size, size);
}

const Env kTorchrun = {{"RANK", "1"},
                       {"WORLD_SIZE", "4"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "localhost"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_RUN_ID", "none"},
                       {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Env kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "2040659969"},
                      {"OMPI_MCA_orte_precondition_transports", "82df4613ae7d60bd"}};
const Env kSlurm = {{"SLURM_PROCID", "3"},         {"SLURM_NTASKS", "8"},
                    {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_JOB_ID", "77"},
                    {"SLURM_STEP_ID", "2"},        {"SLURM_JOB_NUM_NODES", "2"},
                    {"SLURM_STEP_NUM_NODES", "1"}};

Env with(Env env, const std::string& name, const std::string& value) {
  env[name] = value;
  return env;
}

TEST(Resolve, NothingSetIsOneRank) {
  const ConnectOptions options = resolved({});
  expect_ranks(options, 0, 1);
  EXPECT_EQ(options.connect_timeout_ms, 30'000);
  EXPECT_EQ(options.timeout_ms, 300'000);
}

TEST(Resolve, OwnVariables) {
  const ConnectOptions options = resolved({{"UNISONO_RANK", "2"},
                                           {"UNISONO_SIZE", "3"},
                                           {"UNISONO_JOB", "job"},
                                           {"UNISONO_TOKEN", "0123456789abcdef"},
                                           {"UNISONO_CONNECT_TIMEOUT_MS", "5"},
                                           {"UNISONO_TIMEOUT_MS", "0"},
                                           {"UNISONO_ALGORITHM", "all_reduce=ring"}});
  expect_ranks(options, 2, 3);
  EXPECT_EQ(options.job, "job");
  EXPECT_EQ(options.token, "0123456789abcdef");
  EXPECT_EQ(options.connect_timeout_ms, 5);
  EXPECT_EQ(options.timeout_ms, 0);
  EXPECT_EQ(options.algorithm, "all_reduce=ring");
}

TEST(Resolve, OptionsComeBeforeVariables) {
  const Env env = {{"UNISONO_TRANSPORT", "tcp"},
                   {"UNISONO_CHECKSUM", "0"},
                   {"UNISONO_WAIT", "spin=5,yield_us=6"}};
  const ConnectOptions read = resolved(env);
  EXPECT_EQ(read.transport, TransportKind::tcp);
  EXPECT_EQ(read.checksum, false);
  EXPECT_EQ(read.wait.spin, 5);
  EXPECT_EQ(read.wait.yield_us, 6);
  ConnectOptions options;
  options.transport = TransportKind::automatic;
  options.checksum = true;
  options.wait.spin = 7;
  const ConnectOptions given = resolved(env, options);
  EXPECT_EQ(given.transport, TransportKind::automatic);
  EXPECT_EQ(given.checksum, true);
  EXPECT_EQ(given.wait.spin, 7);
  EXPECT_EQ(given.wait.yield_us, 6);
  const ConnectOptions neither = resolved({});
  EXPECT_EQ(neither.transport, TransportKind::automatic);
  EXPECT_EQ(neither.checksum, std::nullopt);
  EXPECT_EQ(neither.wait.spin, -1);
  options.wait.spin = -2;
  EXPECT_THROW(static_cast<void>(resolved({}, options)), Error);
  EXPECT_THROW(static_cast<void>(resolved({{"UNISONO_CHECKSUM", "2"}})), Error);
  EXPECT_THROW(static_cast<void>(resolved({{"UNISONO_WAIT", "spin=many"}})), Error);
}

TEST(Resolve, MaxErrorOfAllCalls) {
  EXPECT_EQ(resolved({}).max_error, 0);
  EXPECT_EQ(resolved({{"UNISONO_MAX_ERROR", "1e-2"}}).max_error, 0.01);
  for (const char* wrong : {"0.002", "-1", "nan", "1%", "little"}) {
    EXPECT_THROW(static_cast<void>(resolved({{"UNISONO_MAX_ERROR", wrong}})), Error) << wrong;
  }
}

TEST(Resolve, Torchrun) {
  const ConnectOptions options = resolved(kTorchrun);
  expect_ranks(options, 1, 4);
  EXPECT_EQ(options.job, "torchrun/none/localhost/29500/0");
  EXPECT_NE(options.job, resolved(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "1")).job);
  EXPECT_NE(options.job, resolved(with(kTorchrun, "MASTER_PORT", "29501")).job);
}

TEST(Resolve, OpenMpi) {
  const ConnectOptions options = resolved(kOpenMpi);
  expect_ranks(options, 1, 2);
  EXPECT_EQ(options.job, "openmpi/2040659969/82df4613ae7d60bd");
}

TEST(Resolve, PmiNamesTheJobAfterTheMakerOfItsConnection) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd one(ends[0]);
  const UniqueFd two(ends[1]);
  const Env env = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  const ConnectOptions first = resolved(with(env, "PMI_FD", std::to_string(one.get())));
  const ConnectOptions second = resolved(with(env, "PMI_FD", std::to_string(two.get())));
  expect_ranks(first, 0, 2);
  EXPECT_EQ(first.job, second.job);
  EXPECT_EQ(first.job.rfind("pmi/" + std::to_string(::getpid()) + "@", 0), 0U) << first.job;
  EXPECT_EQ(resolved(env).job.rfind("pmi/" + std::to_string(::getppid()) + "@", 0), 0U);
  EXPECT_EQ(resolved(with(env, "PMI_JOBID", "7.0")).job, "pmi/7.0/");
}

TEST(Resolve, SlurmStepInALargerJob) {
  const ConnectOptions options = resolved(kSlurm);
  expect_ranks(options, 3, 4);
  EXPECT_EQ(options.job, "slurm/77/2");
}

TEST(Resolve, SlurmBatchScriptIsOneRank) {
  expect_ranks(resolved({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "77"}}), 0,
               1);
}

TEST(Resolve, EarlierSourcesWin) {
  Env all = kTorchrun;
  all.insert(kOpenMpi.begin(), kOpenMpi.end());
  all.insert(kSlurm.begin(), kSlurm.end());
  expect_ranks(resolved(all), 1, 4);
  EXPECT_EQ(resolved(all).job.rfind("torchrun/", 0), 0U);
  all.erase("WORLD_SIZE");
  expect_ranks(resolved(all), 1, 2);
  all["UNISONO_RANK"] = "5";
  all["UNISONO_SIZE"] = "6";
  expect_ranks(resolved(all), 5, 6);
  ConnectOptions options;
  options.rank = 7;
  options.size = 8;
  options.job = "mine";
  options.connect_timeout_ms = 1;
  all["UNISONO_JOB"] = "other";
  all["UNISONO_CONNECT_TIMEOUT_MS"] = "2";
  expect_ranks(resolved(all, options), 7, 8);
  EXPECT_EQ(resolved(all, options).job, "mine");
  EXPECT_EQ(resolved(all, options).connect_timeout_ms, 1);
}

TEST(Resolve, EmptyVariablesCountAsUnset) {
  expect_ranks(resolved({{"RANK", ""}, {"WORLD_SIZE", ""}, {"UNISONO_RANK", ""}}), 0, 1);
}

TEST(Resolve, IsDoneOnce) {
  const ConnectOptions once = resolved(kTorchrun);
  const ConnectOptions twice = resolved({}, once);
  expect_ranks(twice, once.rank, once.size);
  EXPECT_EQ(twice.job, once.job);
}

TEST(Resolve, FileLeavesTheRankOpen) {
  const ConnectOptions options = resolved({{"UNISONO_FILE", "/tmp/x"}, {"UNISONO_SIZE", "2"}});
  expect_ranks(options, -1, 2);
  EXPECT_EQ(options.file, "/tmp/x");
  EXPECT_EQ(refusal({{"UNISONO_FILE", "/tmp/x"}}),
            "config: a rendezvous file is given, but the number of ranks is not\nset "
            "UNISONO_SIZE as well");
}

TEST(Resolve, ContradictionsNameVariableAndValue) {
  EXPECT_EQ(refusal(with(kTorchrun, "RANK", "4")),
            "config: RANK=4 is not below WORLD_SIZE=4\ngive a rank from 0 to 3");
  EXPECT_EQ(refusal({{"UNISONO_RANK", "1"}, {"WORLD_SIZE", "1"}}),
            "config: UNISONO_RANK=1 is not below WORLD_SIZE=1\ngive a rank from 0 to 0");
  EXPECT_EQ(refusal({{"RANK", "1"}}),
            "config: RANK=1, but the number of ranks is not\nset UNISONO_SIZE as well");
  EXPECT_EQ(refusal({{"WORLD_SIZE", "4"}}),
            "config: WORLD_SIZE=4, but the rank of this process is not set\nset UNISONO_RANK "
            "as well, or UNISONO_FILE");
  ConnectOptions options;
  options.rank = 0;
  options.size = 0;
  EXPECT_EQ(refusal({}, options), "config: size=0 is not a number of ranks\ngive 1 or more");
  options.rank = -2;
  EXPECT_EQ(refusal({}, options), "config: rank=-2 is negative\ngive 0 or more, or -1 for unset");
}

TEST(Resolve, GarbageIsNamed) {
  for (const char* value : {"x", "1x", "-1", "1.0", " 1", "+1", "99999999999"}) {
    EXPECT_EQ(refusal(with(kTorchrun, "RANK", value)),
              std::string("config: RANK=") + value +
                  " is not a whole number from 0 to 2147483647\ncorrect or unset RANK");
  }
  EXPECT_EQ(refusal({{"UNISONO_SIZE", "0"}, {"UNISONO_RANK", "0"}}),
            "config: UNISONO_SIZE=0 is not a whole number from 1 to 2147483647\ncorrect or "
            "unset UNISONO_SIZE");
  EXPECT_NE(refusal({{"UNISONO_CONNECT_TIMEOUT_MS", "soon"}}), "accepted");
}

TEST(Resolve, SilenceIsNeverShorterThanASecondSendingTakes) {
  const auto silence = [](const char* value) {
    return silence_of([value](std::string_view name) {
      return name == "UNISONO_SILENCE_MS" && value != nullptr ? std::optional<std::string>(value)
                                                              : std::nullopt;
    });
  };
  EXPECT_EQ(silence(nullptr), 2000);
  EXPECT_EQ(silence("60000"), 60000);
  EXPECT_THROW(silence("499"), Error);
  EXPECT_THROW(silence("2s"), Error);
}

TEST(Resolve, SeveralHostsMeetWhereTheLauncherSays) {
  EXPECT_EQ(resolved(kTorchrun).address, "") << "one host needs none";
  EXPECT_EQ(resolved(with(kTorchrun, "LOCAL_WORLD_SIZE", "2")).address, "localhost:29501");
  const Env v6 = with(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "MASTER_ADDR", "fd00::1");
  EXPECT_EQ(resolved(with(v6, "MASTER_PORT", "65535")).address, "[fd00::1]:65534");
  EXPECT_EQ(resolved(with(kTorchrun, "UNISONO_TRANSPORT", "tcp")).address, "localhost:29501");
  const Env nodes = with(kSlurm, "SLURM_STEP_NUM_NODES", "2");
  EXPECT_EQ(resolved(with(nodes, "SLURM_STEP_NODELIST", "node[07-09,12],gpu1")).address,
            "node07:20541");
  EXPECT_EQ(resolved(with(nodes, "SLURM_STEP_NODELIST", "a3[1,2]-ib,b")).address, "a31-ib:20541");
  EXPECT_EQ(resolved(with(nodes, "SLURM_STEP_NODELIST", "alpha,beta")).address, "alpha:20541");
  for (const auto& [list, first] :
       std::map<std::string, std::string>{{"rack[1-2]node[01-04,07]", "rack1node01"},
                                          {"rack[01,03]node[3-4]-ib,login", "rack01node3-ib"},
                                          {"r[1-2]c[3]n[005-006]", "r1c3n005"},
                                          {"gpu[001-004,010]", "gpu001"},
                                          {"login-a,gpu-b[1-3]", "login-a"},
                                          {"nid00[1024-1027]", "nid001024"},
                                          {"node7", "node7"}}) {
    EXPECT_EQ(resolved(with(nodes, "SLURM_STEP_NODELIST", list)).address, first + ":20541");
  }
  for (const auto& [list, expected] : std::map<std::string, std::string>{
           {"rack[1-2", "\"]\" is expected at character 9 after \"rack[1-2\""},
           {"rack[]", "a number is expected at character 6 after \"rack[\""},
           {"rack[1-2]node[", "a number is expected at character 15 after \"rack[1-2]node[\""},
           {"rack[[1-2]", "a number is expected at character 6 after \"rack[\""},
           {"rack[1x3]", "\"]\" is expected at character 7 after \"rack[1\""},
           {"rack1]", "\",\" or \"[\" is expected at character 6 after \"rack1\""},
           {"rack1 rack2", "\",\" or \"[\" is expected at character 6 after \"rack1\""},
           {",", "a name is expected at character 1"},
           {"a,", "a name is expected at character 3 after \"a,\""},
           {"a,b[3-]", "a number is expected at character 7 after \"a,b[3-\""}}) {
    EXPECT_EQ(
        refusal(with(nodes, "SLURM_STEP_NODELIST", list)),
        "config: SLURM_STEP_NUM_NODES=2, but SLURM_STEP_NODELIST is malformed: " + expected +
            "\nset UNISONO_ADDRESS=host:port on all ranks, with a free port on rank 0's host");
  }
  const Env broken = with(nodes, "SLURM_STEP_NODELIST", "rack[1-2");
  EXPECT_EQ(resolved(with(broken, "UNISONO_ADDRESS", "h:1")).address, "h:1");
  EXPECT_EQ(resolved(with(broken, "SLURM_STEP_NUM_NODES", "1")).address, "");
  // A separate world within the launcher's ranks on this host.
  const Env own = with(with(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "UNISONO_RANK", "0"),
                       "UNISONO_SIZE", "2");
  expect_ranks(resolved(own), 0, 2);
  EXPECT_EQ(resolved(own).address, "");
}

TEST(Resolve, SeveralHostsNeedAnAddressWhereTheLauncherSaysNone) {
  const std::string end =
      ", but the address of rank 0 is not set\nset UNISONO_ADDRESS=host:port on all ranks, "
      "with a free port on rank 0's host";
  const Env open_mpi = with(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  EXPECT_EQ(refusal(open_mpi),
            "config: OMPI_COMM_WORLD_SIZE=2 and OMPI_COMM_WORLD_LOCAL_SIZE=1" + end);
  const Env pmi = {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(refusal(pmi), "config: PMI_SIZE=4 and MPI_LOCALNRANKS=2" + end);
  EXPECT_EQ(refusal({{"UNISONO_RANK", "0"}, {"UNISONO_SIZE", "2"}, {"UNISONO_TRANSPORT", "tcp"}}),
            "config: UNISONO_TRANSPORT=tcp" + end);
  const ConnectOptions met = resolved(with(open_mpi, "UNISONO_ADDRESS", "10.0.0.1:29600"));
  EXPECT_EQ(met.address, "10.0.0.1:29600");
  EXPECT_EQ(met.token, "82df4613ae7d60bd") << "Open MPI's own secret serves";
  EXPECT_EQ(resolved(with(open_mpi, "UNISONO_ADDRESS", "10.0.0.1:29600")).job,
            "openmpi/2040659969/82df4613ae7d60bd");
  EXPECT_EQ(resolved(with(pmi, "UNISONO_ADDRESS", "10.0.0.1:29600")).job, "pmi")
      << "the name of a PMI job is not the same on all hosts";
}

TEST(Resolve, TransportsThatCannotBeAreRefused) {
  EXPECT_EQ(refusal({{"UNISONO_TRANSPORT", "udp"}}),
            "config: transport \"udp\" is none\nauto, shm or tcp (UNISONO_TRANSPORT)");
  EXPECT_EQ(refusal(with(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "UNISONO_TRANSPORT", "shm")),
            "config: WORLD_SIZE=4 and LOCAL_WORLD_SIZE=2, but UNISONO_TRANSPORT=shm connects ranks "
            "of one host only\nunset UNISONO_TRANSPORT, or start all ranks on one host");
}

TEST(Resolve, ShortTokenIsRefused) {
  EXPECT_EQ(refusal({{"UNISONO_TOKEN", "secret"}}),
            "config: the job token has 6 characters\nat least 16, for example from: openssl "
            "rand -hex 16");
}

TEST(Resolve, WhatCannotBeIsRefusedAlsoWhereAnOptionWins) {
  const std::pair<std::string, std::string> wrong[] = {
      {"UNISONO_TRANSPORT", "foo"},  {"UNISONO_TOKEN", "short"},
      {"UNISONO_RANK", "-1"},        {"UNISONO_SIZE", "0"},
      {"UNISONO_TIMEOUT_MS", "abc"}, {"UNISONO_CONNECT_TIMEOUT_MS", "1s"}};
  for (const auto& [name, value] : wrong) {
    const EnvLookup lookup = [&](std::string_view asked) {
      return asked == name ? std::optional(value) : std::nullopt;
    };
    try {
      check_texts_and_numbers(lookup);
      ADD_FAILURE() << name << "=" << value << " passes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::config) << error.what();
    }
  }
  check_texts_and_numbers([](std::string_view) { return std::nullopt; });
}

}  // namespace
}  // namespace unisono::comm
