#include "base/env.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/private.h"
#include "base/words.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

constexpr std::string_view kPrefix = "UNISONO_";

constexpr std::array<EnvVariable, 33> kVariables = {{
    {"UNISONO_RANK", "", "This process's rank; overrides the launcher's variable"},
    {"UNISONO_SIZE", "", "The number of ranks; overrides the launcher's variable"},
    {"UNISONO_JOB", "", "Name of the job; ranks of one host with the same name find each other"},
    {"UNISONO_TOKEN", "",
     "Secret of the job, at least 16 characters; every connection must prove it"},
    {"UNISONO_TLS", "0", "1: encrypt connections between hosts with TLS 1.3; same on all ranks"},
    {"UNISONO_TLS_IDENTITY", "",
     "With UNISONO_TLS=1: PEM file with this host's certificate and key"},
    {"UNISONO_TLS_TRUSTED", "",
     "Folder of trusted certificates; each other host must show one of them"},
    {"UNISONO_CHECKSUM", "1", "0: send messages between hosts without checksum; same on all ranks"},
    {"UNISONO_FILE", "", "Rendezvous file; assigns ranks in the order of arrival"},
    {"UNISONO_ADDRESS", "",
     "For several hosts: the host:port at which rank 0 listens; needs a token"},
    {"UNISONO_INTERFACE", "",
     "Addresses at which other ranks reach this host: \"eth0,10.0.0.0/8\""},
    {"UNISONO_PORTS", "", "Ports at which this rank may listen: \"20000-20999\""},
    {"UNISONO_TRANSPORT", "auto", "auto, shm (one host only), or tcp (between all ranks)"},
    {"UNISONO_NETWORK", "tcp", "Network between hosts: tcp or ucx; same on all ranks"},
    {"UNISONO_HOST", "", "Name of this host; ranks with different names count as different hosts"},
    {"UNISONO_RELAY", "", "Set by unisono run --chaos: the relay between ranks of several hosts"},
    {"UNISONO_LAUNCHER", "",
     "Set by unisono run: the file that records which ranks have ended, and why"},
    {"UNISONO_CONNECT_TIMEOUT_MS", "30000", "How long to wait for all ranks; 0: no limit"},
    {"UNISONO_TIMEOUT_MS", "300000", "How long one operation may wait for its peers; 0: no limit"},
    {"UNISONO_DEADLOCK", "tell",
     "What to do when ranks can never continue: tell, abort or off; \"abort,after_ms=1000\""},
    {"UNISONO_SILENCE_MS", "2000",
     "How long another host may be silent before its ranks count as lost"},
    {"UNISONO_ALGORITHM", "",
     "Algorithms: \"all_reduce=ring,broadcast=binomial\", \"reproducible\", \"tree_order\""},
    {"UNISONO_PROFILE", "", "File by unisono tune that selects algorithms, or none"},
    {"UNISONO_WAIT", "", "How ranks wait before they sleep: \"spin=3000,yield_us=500\""},
    {"UNISONO_THREADS", "1", "Threads per rank that move a long call; same on all ranks"},
    {"UNISONO_MAX_ERROR", "0",
     "Error allowed in f32 sums between hosts, such as 0.01; same on all ranks"},
    {"UNISONO_CUDA", "libcuda.so.1", "Driver library for collectives on device memory"},
    {"UNISONO_RECORD", "",
     "Folder for recordings of operations and messages, for unisono trace merge"},
    {"UNISONO_RECORD_EVENTS", "32768", "Events that a rank keeps: the newest N; 32 bytes each"},
    {"UNISONO_REPLACE_GLOO", "0", "1: give unisono to PyTorch programs that request gloo"},
    {"UNISONO_QUIET", "0", "1: do not report on stderr when other ranks are slow to start"},
    {"UNISONO_LANG", "",
     "Language of the overview, of plans and of frequent errors: zh or en; else the locale's"},
    {"UNISONO_COLOR", "auto", "Colour in the terminal: auto, always or never"},
}};

// Returns the most similar candidate. Also finds TIMEOUT_MS for TIMEOUT, which lacks the unit.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string_view near = nearest_word(word, candidates); !near.empty()) {
    return near;
  }
  const auto longer = std::find_if(
      candidates.begin(), candidates.end(),
      [word](std::string_view name) { return !word.empty() && name.starts_with(word); });
  return longer == candidates.end() ? std::string_view{} : *longer;
}

bool is_known(std::string_view name) {
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [name](const EnvVariable& row) { return row.name == name; });
}

}  // namespace

std::span<const EnvVariable> env_variables() {
  return kVariables;
}

UNISONO_PRIVATE std::optional<std::string> read_env(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool read_flag(std::string_view name) {
  const std::string value = read_env(name).value_or("");
  if (!value.empty() && value != "0" && value != "1") {
    throw Error(ErrorCode::config, std::string(name) + "=" + value +
                                       " is neither 0 nor 1\ncorrect or unset " +
                                       std::string(name));
  }
  return value == "1";
}

std::vector<std::string> unknown_env_warnings() {
  // Compares only the text after the prefix, because the common prefix would make all names look
  // similar.
  std::array<std::string_view, kVariables.size()> endings;
  std::transform(kVariables.begin(), kVariables.end(), endings.begin(),
                 [](const EnvVariable& row) { return row.name.substr(kPrefix.size()); });
  std::vector<std::string> warnings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.substr(0, kPrefix.size()) != kPrefix || is_known(name)) {
      continue;
    }
    std::string warning = std::string(name) + " is set, but unisono has no such variable";
    if (const auto near = nearest(name.substr(kPrefix.size()), endings); !near.empty()) {
      warning.append("; did you mean ").append(kPrefix).append(near).append("?");
    }
    warnings.push_back(std::move(warning));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

}  // namespace unisono
