#include "bootstrap/launcher_env.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/env.h"
#include "base/json_text.h"
#include "base/move_code.h"
#include "base/wait_policy.h"
#include "bootstrap/local_world.h"
#include "bootstrap/process.h"
#include "bootstrap/wire.h"
#include "transport/network.h"
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
  // Returns the first of two names that is set.
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
  std::optional<double> real(std::string_view name) const {
    const auto value = text(name);
    if (!value) {
      return std::nullopt;
    }
    double result = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, result);
    if (error != std::errc() || stop != end) {
      throw Error(ErrorCode::config, std::string(name) + "=" + *value +
                                         " is not a number\ncorrect or unset " + std::string(name));
    }
    return result;
  }

 private:
  const EnvLookup& lookup_;
};

// The settings of one launcher, and the names of its variables.
struct Launch {
  std::string_view rank_name;
  std::string_view size_name;
  std::string_view local_size_name;  // ranks on this host
  std::string_view nodes_name;
  std::string job;
  std::string address = {};          // of rank 0, for ranks on several hosts; empty: unknown
  std::string address_problem = {};  // why the address is unknown although the launcher gives it
  std::string token = {};            // a secret that all ranks have
  std::string job_of_all = {};       // if `job` differs between hosts
};

// Returns a port next to the port that PyTorch itself uses.
std::string beside(const Reader& env) {
  const auto port = env.number("MASTER_PORT", 1);
  const auto host = env.text("MASTER_ADDR");
  if (!port || !host) {
    return {};
  }
  const bool v6 = host->find(':') != std::string::npos && host->front() != '[';
  return (v6 ? "[" + *host + "]" : *host) + ":" + std::to_string(*port + (*port < 65535 ? 1 : -1));
}

Launch torchrun(const Reader& env) {
  return {.rank_name = "RANK",
          .size_name = "WORLD_SIZE",
          .local_size_name = "LOCAL_WORLD_SIZE",
          .nodes_name = "",
          .job = "torchrun/" + env.text_or("TORCHELASTIC_RUN_ID", "") + "/" +
                 env.text_or("MASTER_ADDR", "") + "/" + env.text_or("MASTER_PORT", "") + "/" +
                 env.text_or("TORCHELASTIC_RESTART_COUNT", "0"),
          .address = beside(env)};
}

// Open MPI 4 names its namespace by a hash of a process id, which can recur. The key that it makes
// for its own transports is random, and only the ranks know it.
Launch open_mpi(const Reader& env) {
  const auto name = env.either("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
  const std::string key = env.text_or("OMPI_MCA_orte_precondition_transports", "");
  return {.rank_name = "OMPI_COMM_WORLD_RANK",
          .size_name = "OMPI_COMM_WORLD_SIZE",
          .local_size_name = "OMPI_COMM_WORLD_LOCAL_SIZE",
          .nodes_name = "",
          .job = "openmpi/" + env.text_or(name, "") + "/" + key,
          .token = key};
}

std::string_view slurm_nodes(const Reader& env) {
  return env.either("SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES");
}

// Reads a Slurm list of nodes, such as "rack[1-2]node[07-09,12],gpu1".
class NodeList {
 public:
  explicit NodeList(std::string_view list) : list_(list) {
    do {
      read_name();
      is_first_ = false;
    } while (take(','));
  }

  // Returns "rack1node07" for the list above. Slurm puts rank 0 on this host unless a task
  // distribution says otherwise.
  const std::string& first() const { return first_; }
  // Returns what is expected where; empty if the list is well-formed.
  const std::string& problem() const { return problem_; }

 private:
  bool ends() const { return at_ == list_.size() || !problem_.empty(); }
  bool take(char c) {
    const bool is_next = !ends() && list_[at_] == c;
    at_ += is_next ? 1 : 0;
    return is_next;
  }
  void expect(const std::string& what) {
    if (problem_.empty()) {
      const std::string_view before = list_.substr(0, at_);
      problem_ = what + " is expected at character " + std::to_string(at_ + 1) +
                 (before.empty() ? "" : " after \"" + std::string(before) + "\"");
    }
  }
  // Reads characters and returns true if there are any; those of the first node are kept.
  bool read(std::size_t end, bool is_kept) {
    const std::string_view text = list_.substr(at_, end - at_);
    first_ += is_kept ? text : "";
    at_ += text.size();
    return !text.empty();
  }

  void read_name() {
    bool is_empty = true;
    while (!ends() && list_[at_] != ',') {
      if (take('[')) {
        read_numbers();
      } else if (!read(list_.find_first_of("[],: \t\n", at_), is_first_)) {
        break;
      }
      is_empty = false;
    }
    if (is_empty) {
      expect("a name");
    } else if (!ends() && list_[at_] != ',') {
      expect("\",\" or \"[\"");
    }
  }

  void read_numbers() {
    bool is_kept = is_first_;
    do {
      read_number(is_kept);
      is_kept = false;
      if (take('-')) {
        read_number(false);
      }
    } while (take(','));
    if (!take(']')) {
      expect("\"]\"");
    }
  }

  void read_number(bool is_kept) {
    if (!read(list_.find_first_not_of("0123456789", at_), is_kept)) {
      expect("a number");
    }
  }

  std::string_view list_;
  std::size_t at_ = 0;
  bool is_first_ = true;
  std::string first_;
  std::string problem_;
};

// Sets the address in a Slurm step. Slurm gives the ranks no port, so the number of the step
// selects one.
void set_slurm_address(Launch& launch, const Reader& env) {
  constexpr int kFirstPort = 20000;
  constexpr int kPorts = 12000;  // below the ephemeral ports of systems
  const auto job = env.number("SLURM_JOB_ID", 0);
  const auto step = env.number("SLURM_STEP_ID", 0);
  const std::string_view name = env.either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  const std::string list = env.text_or(name, "");
  if (!job || !step || list.empty()) {
    return;
  }
  const NodeList nodes(list);
  if (nodes.problem().empty()) {
    launch.address = nodes.first() + ":" +
                     std::to_string(kFirstPort + (*job % kPorts * 7 + *step % kPorts) % kPorts);
  } else {
    launch.address_problem = std::string(name) + " is malformed: " + nodes.problem();
  }
}

// A PMI launcher provides no job name. It provides a connection to a process that is the same for
// all ranks on this host, so that process identifies the job. Sending a request over the connection
// would disturb an MPI library in this process.
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
  Launch launch = {.rank_name = "PMI_RANK",
                   .size_name = "PMI_SIZE",
                   .local_size_name = "MPI_LOCALNRANKS",
                   .nodes_name = in_slurm_step ? slurm_nodes(env) : "",
                   .job = job,
                   .job_of_all = "pmi"};
  if (in_slurm_step) {
    set_slurm_address(launch, env);
  }
  return launch;
}

Launch slurm(const Reader& env) {
  Launch launch = {
      .rank_name = "SLURM_PROCID",
      .size_name = env.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
      .local_size_name = "",
      .nodes_name = slurm_nodes(env),
      .job = "slurm/" + env.text_or("SLURM_JOB_ID", "") + "/" + env.text_or("SLURM_STEP_ID", "")};
  set_slurm_address(launch, env);
  return launch;
}

// Returns the first launcher whose variables are set. Some of torchrun's variables may be set by
// accident, so torchrun counts only if there is no other launcher. A Slurm batch script has
// SLURM_PROCID, but is not a step.
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

// A value and the name of its source, for messages.
struct Sourced {
  int value = -1;
  std::string source;
  std::string described() const { return source + "=" + std::to_string(value); }
};

// Describes the launcher's several hosts for error texts; empty if the launcher reports one host.
std::string several_hosts(const Launch& launch, const Reader& env, const Sourced& size) {
  const auto local =
      launch.local_size_name.empty() ? std::nullopt : env.number(launch.local_size_name, 1);
  if (local && size.source == launch.size_name && *local != size.value) {
    return size.described() + " and " + std::string(launch.local_size_name) + "=" +
           std::to_string(*local);
  }
  const auto nodes = launch.nodes_name.empty() ? std::nullopt : env.number(launch.nodes_name, 1);
  if (nodes && *nodes > 1 && size.source == launch.size_name) {
    return std::string(launch.nodes_name) + "=" + std::to_string(*nodes);
  }
  return {};
}

TransportKind transport_of(const Reader& env) {
  const std::string text = env.text_or("UNISONO_TRANSPORT", "auto");
  if (text != "auto" && text != "shm" && text != "tcp") {
    throw Error(ErrorCode::config,
                "transport \"" + text + "\" is none\nauto, shm or tcp (UNISONO_TRANSPORT)");
  }
  return text == "auto"  ? TransportKind::automatic
         : text == "shm" ? TransportKind::shm
                         : TransportKind::tcp;
}

std::optional<bool> read_checksum(const Reader& env) {
  const std::string text = env.text_or("UNISONO_CHECKSUM", "");
  if (!text.empty() && text != "0" && text != "1") {
    throw Error(ErrorCode::config, "UNISONO_CHECKSUM=" + text +
                                       " is neither 0 nor 1\ncorrect or unset UNISONO_CHECKSUM");
  }
  return text.empty() ? std::nullopt : std::optional(text == "1");
}

WaitOptions wait_of(const WaitOptions& given, const Reader& env) {
  const WaitPolicy asked =
      parse_wait_policy(env.text_or("UNISONO_WAIT", ""), {.spin = -1, .yield_us = -1});
  for (const int value : {given.spin, given.yield_us}) {
    if (value < -1 || value > kMostWait) {
      throw Error(ErrorCode::config, "the option `wait` has " + std::to_string(value) +
                                         "\ngive numbers from 0 to " + std::to_string(kMostWait) +
                                         ", or -1 for unset");
    }
  }
  return {.spin = given.spin >= 0 ? given.spin : asked.spin,
          .yield_us = given.yield_us >= 0 ? given.yield_us : asked.yield_us};
}

void check_token(const std::string& token) {
  if (!token.empty() && token.size() < kLeastTokenCharacters) {
    throw Error(ErrorCode::config, "the job token has " + std::to_string(token.size()) +
                                       " characters\nat least " +
                                       std::to_string(kLeastTokenCharacters) +
                                       ", for example from: openssl rand -hex 16");
  }
}

// Chooses the meeting point for ranks on several hosts; does nothing if there is one host.
void choose_address(ConnectOptions& result, const std::optional<Launch>& launch, const Reader& env,
                    const Sourced& size) {
  const std::string several = launch ? several_hosts(*launch, env, size) : std::string();
  if (!several.empty() && result.transport == TransportKind::shm) {
    throw Error(ErrorCode::config, several +
                                       ", but UNISONO_TRANSPORT=shm connects ranks of one "
                                       "host only\nunset UNISONO_TRANSPORT, or start all "
                                       "ranks on one host");
  }
  const bool needed =
      result.bootstrap == nullptr &&
      (!several.empty() || (result.transport == TransportKind::tcp && size.value > 1));
  if (result.address.empty() && needed) {
    result.address = launch ? launch->address : "";
    if (result.address.empty()) {
      const std::string problem = launch ? launch->address_problem : "";
      throw Error(ErrorCode::config,
                  (several.empty() ? "UNISONO_TRANSPORT=tcp" : several) + ", but " +
                      (problem.empty() ? "the address of rank 0 is not set" : problem) +
                      "\nset UNISONO_ADDRESS=host:port on "
                      "all ranks, with a free port on rank 0's host");
    }
  }
  if (!result.address.empty() && launch) {
    result.token = result.token.empty() ? launch->token : result.token;
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
    throw Error(ErrorCode::config, size.described() + " is not a number of ranks\ngive 1 or more");
  }
  if (rank.value >= 0 && rank.value >= size.value) {
    throw Error(ErrorCode::config, rank.described() + " is not below " + size.described() +
                                       "\ngive a rank from 0 to " + std::to_string(size.value - 1));
  }
}

Sourced choose(int option, std::string_view option_name, const Reader& env,
               std::string_view own_name, std::string_view launch_name, int least) {
  if (option >= 0) {
    return {option, std::string(option_name)};
  }
  if (option < -1) {
    throw Error(ErrorCode::config, std::string(option_name) + "=" + std::to_string(option) +
                                       " is negative\ngive 0 or more, or -1 for unset");
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
    throw Error(ErrorCode::config, "a timeout of " + std::to_string(field) +
                                       " ms is negative\ngive 0 for no limit, or more");
  }
  if (field == unset) {
    field = env.number(name, 0).value_or(unset);
  }
}

void check_threads(int threads) {
  if (threads < 1 || threads > kMostThreads) {
    throw Error(ErrorCode::config,
                std::to_string(threads) +
                    " threads of a rank\nset UNISONO_THREADS, or the option `threads`, to 1 to " +
                    std::to_string(kMostThreads));
  }
}

void check_max_error(double max_error) {
  if (max_error != 0 && !(max_error >= kLeastMaxError)) {
    throw Error(ErrorCode::config,
                "max_error for all calls is " + json_number(max_error) +
                    "\nset UNISONO_MAX_ERROR, or the option `max_error`, to 0 for "
                    "exact results, or to at least " +
                    json_number(kLeastMaxError));
  }
}

}  // namespace

ConnectOptions resolve(const ConnectOptions& options, const EnvLookup& lookup) {
  const Reader env(lookup);
  const ConnectOptions unset;
  ConnectOptions result = options;
  fill_text(result.job, env, "UNISONO_JOB");
  fill_text(result.token, env, "UNISONO_TOKEN");
  fill_text(result.file, env, "UNISONO_FILE");
  fill_text(result.algorithm, env, "UNISONO_ALGORITHM");
  fill_text(result.profile, env, "UNISONO_PROFILE");
  fill_text(result.address, env, "UNISONO_ADDRESS");
  fill_text(result.interface, env, "UNISONO_INTERFACE");
  fill_text(result.ports, env, "UNISONO_PORTS");
  fill_text(result.host, env, "UNISONO_HOST");
  result.wait = wait_of(result.wait, env);
  if (!result.transport) {
    result.transport = transport_of(env);
  }
  if (!result.checksum) {
    result.checksum = read_checksum(env);
  }
  if (result.threads == 0) {
    result.threads = env.number("UNISONO_THREADS", 1).value_or(1);
  }
  check_threads(result.threads);
  if (result.max_error == unset.max_error) {
    result.max_error = max_error_of(lookup);
  }
  check_max_error(result.max_error);
  fill_ms(result.connect_timeout_ms, unset.connect_timeout_ms, env, "UNISONO_CONNECT_TIMEOUT_MS");
  fill_ms(result.timeout_ms, unset.timeout_ms, env, "UNISONO_TIMEOUT_MS");
  check_token(result.token);
  const bool complete = options.rank >= 0 && options.size >= 0 && !result.job.empty();
  const auto launch = complete ? std::nullopt : find_launch(env);
  const Sourced rank =
      choose(options.rank, "rank", env, "UNISONO_RANK", launch ? launch->rank_name : "", 0);
  const Sourced size =
      choose(options.size, "size", env, "UNISONO_SIZE", launch ? launch->size_name : "", 1);
  check(rank, size, !result.file.empty());
  const bool alone = rank.value < 0 && size.value < 0;
  result.rank = alone || size.value == 1 ? 0 : rank.value;
  result.size = alone ? 1 : size.value;
  choose_address(result, launch, env, size);
  if (result.job.empty() && launch) {
    const bool local = result.address.empty() || launch->job_of_all.empty();
    result.job = local ? launch->job : launch->job_of_all;
  }
  if (result.job.empty()) {
    result.job = "default";
  }
  return result;
}

int threads_of(const EnvLookup& lookup) {
  const int threads = Reader(lookup).number("UNISONO_THREADS", 1).value_or(1);
  check_threads(threads);
  return threads;
}

std::optional<bool> checksum_of(const EnvLookup& lookup) {
  return read_checksum(Reader(lookup));
}

double max_error_of(const EnvLookup& lookup) {
  const double max_error = Reader(lookup).real("UNISONO_MAX_ERROR").value_or(0);
  check_max_error(max_error);
  return max_error;
}

int silence_of(const EnvLookup& lookup) {
  constexpr int kShortestMs = 500;  // a lost packet is sent again well before
  return Reader(lookup).number("UNISONO_SILENCE_MS", kShortestMs).value_or(transport::kSilenceMs);
}

void check_texts_and_numbers(const EnvLookup& lookup) {
  const Reader env(lookup);
  static_cast<void>(transport_of(env));
  static_cast<void>(read_checksum(env));
  static_cast<void>(wait_of({}, env));
  check_token(env.text_or("UNISONO_TOKEN", ""));
  for (const std::string_view name :
       {"UNISONO_RANK", "UNISONO_TIMEOUT_MS", "UNISONO_CONNECT_TIMEOUT_MS"}) {
    static_cast<void>(env.number(name, 0));
  }
  for (const std::string_view name : {"UNISONO_SIZE", "UNISONO_RECORD_EVENTS"}) {
    static_cast<void>(env.number(name, 1));
  }
  static_cast<void>(threads_of(lookup));
  static_cast<void>(max_error_of(lookup));
  static_cast<void>(silence_of(lookup));
}

ConnectOptions resolve(const ConnectOptions& options) {
  return resolve(options, read_env);
}

}  // namespace unisono::comm
