#include "comm/rendezvous_env.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/env.h"
#include "comm/local_world.h"
#include "comm/rendezvous_process.h"
#include "comm/rendezvous_wire.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kLeastTokenCharacters = 16;

class Reader {
 public:
  explicit Reader(const EnvLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(std::string_view name) const {
    auto value = lookup_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  std::string text_or(std::string_view name, std::string_view otherwise) const {
    return text(name).value_or(std::string(otherwise));
  }
  // The first of two names that is set.
  std::string_view either(std::string_view name, std::string_view otherwise) const {
    return text(name) ? name : otherwise;
  }
  std::optional<int> number(std::string_view name, int least) const {
    const auto value = text(name);
    if (!value) {
      return std::nullopt;
    }
    int result = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, result);
    if (error != std::errc() || stop != end || result < least) {
      throw Error(ErrorCode::config, std::string(name) + "=" + *value +
                                         " is not a whole number from " + std::to_string(least) +
                                         " to " + std::to_string(std::numeric_limits<int>::max()) +
                                         "\ncorrect or unset " + std::string(name));
    }
    return result;
  }

 private:
  const EnvLookup& lookup_;
};

// What one launcher says, and under which names.
struct Launch {
  std::string_view rank_name;
  std::string_view size_name;
  std::string_view local_size_name;  // ranks on this host
  std::string_view nodes_name;
  std::string job;
};

Launch torchrun(const Reader& env) {
  return {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "",
          "torchrun/" + env.text_or("TORCHELASTIC_RUN_ID", "") + "/" +
              env.text_or("MASTER_ADDR", "") + "/" + env.text_or("MASTER_PORT", "") + "/" +
              env.text_or("TORCHELASTIC_RESTART_COUNT", "0")};
}

// The namespace of Open MPI 4 is a hash of a process id, which can come again; the key that it
// makes for its own transports is random.
Launch open_mpi(const Reader& env) {
  const auto name = env.either("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
  return {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "",
          "openmpi/" + env.text_or(name, "") + "/" +
              env.text_or("OMPI_MCA_orte_precondition_transports", "")};
}

std::string_view slurm_nodes(const Reader& env) {
  return env.either("SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES");
}

// A PMI launcher gives no name of the job, but a connection to itself: the process that made it is
// the same for all ranks of this host. Asking over the connection would disturb an MPI library in
// the same process.
Launch pmi(const Reader& env) {
  std::string job;
  if (env.text("PMI_JOBID") || env.text("PMI_PORT")) {
    job = "pmi/" + env.text_or("PMI_JOBID", "") + "/" + env.text_or("PMI_PORT", "");
  } else {
    const auto fd = env.number("PMI_FD", 0);
    const auto maker = fd ? credentials_of(*fd) : std::nullopt;
    const pid_t launcher = maker && maker->pid > 0 ? maker->pid : ::getppid();
    job = "pmi/" + std::to_string(launcher) + "@" + std::to_string(start_of(launcher).value_or(0));
  }
  const bool in_slurm_step = env.text("SLURM_STEP_ID") && !env.text("MPI_LOCALNRANKS");
  return {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", in_slurm_step ? slurm_nodes(env) : "", job};
}

Launch slurm(const Reader& env) {
  return {"SLURM_PROCID", env.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), "", slurm_nodes(env),
          "slurm/" + env.text_or("SLURM_JOB_ID", "") + "/" + env.text_or("SLURM_STEP_ID", "")};
}

// The first launcher that left its marks. Half of torchrun's may be there by accident, so it counts
// only if there is no other. A Slurm batch script has a SLURM_PROCID, but is no step.
std::optional<Launch> find_launch(const Reader& env) {
  if (env.text("RANK") && env.text("WORLD_SIZE")) {
    return torchrun(env);
  }
  if (env.text("OMPI_COMM_WORLD_RANK")) {
    return open_mpi(env);
  }
  if (env.text("PMI_RANK")) {
    return pmi(env);
  }
  if (env.text("SLURM_PROCID") && env.text("SLURM_STEP_ID")) {
    return slurm(env);
  }
  if (env.text("RANK") || env.text("WORLD_SIZE")) {
    return torchrun(env);
  }
  return std::nullopt;
}

// A value and the name that it came from, for messages.
struct Sourced {
  int value = -1;
  std::string source;
  std::string described() const { return source + "=" + std::to_string(value); }
};

void require_one_host(const Launch& launch, const Reader& env, const Sourced& size) {
  const std::string only =
      ", but this version connects ranks of one host only\nstart all "
      "ranks on one host";
  const auto local =
      launch.local_size_name.empty() ? std::nullopt : env.number(launch.local_size_name, 1);
  if (local && size.source == launch.size_name && *local != size.value) {
    throw Error(ErrorCode::config, size.described() + " and " +
                                       std::string(launch.local_size_name) + "=" +
                                       std::to_string(*local) + only);
  }
  const auto nodes = launch.nodes_name.empty() ? std::nullopt : env.number(launch.nodes_name, 1);
  if (nodes && *nodes > 1) {
    throw Error(ErrorCode::config,
                std::string(launch.nodes_name) + "=" + std::to_string(*nodes) + only);
  }
}

void check(const Sourced& rank, const Sourced& size, bool has_file) {
  if (size.value < 0 && (rank.value >= 0 || has_file)) {
    throw Error(ErrorCode::config,
                (has_file ? "a rendezvous file is given" : rank.described()) +
                    ", but the number of ranks is not\nset UNISONO_SIZE as well");
  }
  if (size.value >= 0 && rank.value < 0 && !has_file) {
    throw Error(ErrorCode::config, size.described() +
                                       ", but the rank of this process is not set\nset "
                                       "UNISONO_RANK as well, or UNISONO_FILE");
  }
  if (size.value == 0) {
    throw Error(ErrorCode::config, size.described() + " is not a number of ranks\ngive at least 1");
  }
  if (rank.value >= 0 && rank.value >= size.value) {
    throw Error(ErrorCode::config, rank.described() + " is not below " + size.described() +
                                       "\nranks 0 to " + std::to_string(size.value - 1));
  }
}

Sourced choose(int option, std::string_view option_name, const Reader& env,
               std::string_view own_name, std::string_view launch_name, int least) {
  if (option >= 0) {
    return {option, std::string(option_name)};
  }
  if (option < -1) {
    throw Error(ErrorCode::config, std::string(option_name) + "=" + std::to_string(option) +
                                       " is negative\na number from 0, or -1 for unset");
  }
  for (const std::string_view name : {own_name, launch_name}) {
    if (const auto value = name.empty() ? std::nullopt : env.number(name, least)) {
      return {*value, std::string(name)};
    }
  }
  return {};
}

void fill_text(std::string& field, const Reader& env, std::string_view name) {
  if (field.empty()) {
    field = env.text_or(name, "");
  }
}

void fill_ms(int& field, int unset, const Reader& env, std::string_view name) {
  if (field < 0) {
    throw Error(ErrorCode::config,
                "a timeout of " + std::to_string(field) + " ms is negative\n0 for none");
  }
  if (field == unset) {
    field = env.number(name, 0).value_or(unset);
  }
}

}  // namespace

ConnectOptions resolve(const ConnectOptions& options, const EnvLookup& lookup) {
  const Reader env(lookup);
  ConnectOptions result = options;
  fill_text(result.job, env, "UNISONO_JOB");
  fill_text(result.token, env, "UNISONO_TOKEN");
  fill_text(result.file, env, "UNISONO_FILE");
  fill_text(result.algorithm, env, "UNISONO_ALGORITHM");
  fill_text(result.profile, env, "UNISONO_PROFILE");
  fill_text(result.wait, env, "UNISONO_WAIT");
  const ConnectOptions unset;
  fill_ms(result.connect_timeout_ms, unset.connect_timeout_ms, env, "UNISONO_CONNECT_TIMEOUT_MS");
  fill_ms(result.timeout_ms, unset.timeout_ms, env, "UNISONO_TIMEOUT_MS");
  if (!result.token.empty() && result.token.size() < kLeastTokenCharacters) {
    throw Error(ErrorCode::config, "the job token has " + std::to_string(result.token.size()) +
                                       " characters\nat least " +
                                       std::to_string(kLeastTokenCharacters) +
                                       ", for example from: openssl rand -hex 16");
  }
  const bool complete = options.rank >= 0 && options.size >= 0 && !result.job.empty();
  const auto launch = complete ? std::nullopt : find_launch(env);
  const Sourced rank =
      choose(options.rank, "rank", env, "UNISONO_RANK", launch ? launch->rank_name : "", 0);
  const Sourced size =
      choose(options.size, "size", env, "UNISONO_SIZE", launch ? launch->size_name : "", 1);
  if (launch && size.source == launch->size_name) {
    require_one_host(*launch, env, size);
  }
  check(rank, size, !result.file.empty());
  const bool alone = rank.value < 0 && size.value < 0;
  result.rank = alone || size.value == 1 ? 0 : rank.value;
  result.size = alone ? 1 : size.value;
  if (result.job.empty()) {
    result.job = launch ? launch->job : "default";
  }
  return result;
}

ConnectOptions resolve(const ConnectOptions& options) {
  return resolve(options, read_env);
}

}  // namespace unisono::comm
