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

constexpr std::array<EnvVariable, 32> kVariables = {{
    {"UNISONO_RANK", "", "This process's rank; wins over every launcher's variable"},
    {"UNISONO_SIZE", "", "The number of ranks; wins over every launcher's variable"},
    {"UNISONO_JOB", "", "Names the job: ranks with the same name on one host find each other"},
    {"UNISONO_TOKEN", "", "Secret of the job, at least 16 characters; every connection proves it"},
    {"UNISONO_TLS", "0", "1: connections between hosts are encrypted, by TLS 1.3; all ranks alike"},
    {"UNISONO_TLS_IDENTITY", "", "With UNISONO_TLS=1: this host's certificate and key, a PEM file"},
    {"UNISONO_TLS_TRUSTED", "", "The folder of certificates that other hosts must show one of"},
    {"UNISONO_CHECKSUM", "1", "0: messages between hosts carry no checksum; all ranks alike"},
    {"UNISONO_FILE", "", "A file as the meeting point; gives out ranks in the order of arrival"},
    {"UNISONO_ADDRESS", "", "Several hosts: where rank 0 listens, host:port; needs a token"},
    {"UNISONO_INTERFACE", "", "Addresses of this host for other ranks: \"eth0,10.0.0.0/8\""},
    {"UNISONO_PORTS", "", "Ports at which this rank may listen: \"20000-20999\""},
    {"UNISONO_TRANSPORT", "auto", "auto, shm (one host only), or tcp (between all ranks)"},
    {"UNISONO_NETWORK", "tcp", "tcp, or ucx: messages between hosts go over UCX; all ranks alike"},
    {"UNISONO_HOST", "", "Ranks with different names count as being on different hosts"},
    {"UNISONO_RELAY", "", "Set by unisono run --chaos: what stands between ranks of several hosts"},
    {"UNISONO_LAUNCHER", "",
     "Set by unisono run: the file in which it and the ranks say who has ended, and why"},
    {"UNISONO_CONNECT_TIMEOUT_MS", "30000", "How long to wait for all ranks; 0: for ever"},
    {"UNISONO_TIMEOUT_MS", "300000", "How long one operation may wait for its peers; 0: for ever"},
    {"UNISONO_SILENCE_MS", "2000",
     "How long the system of another host may be silent before its ranks are lost"},
    {"UNISONO_ALGORITHM", "",
     "Algorithms: \"all_reduce=ring,broadcast=binomial\", \"reproducible\", \"tree_order\""},
    {"UNISONO_PROFILE", "", "What unisono tune measured chooses algorithms; a file, or none"},
    {"UNISONO_WAIT", "", "How ranks wait before they sleep: \"spin=3000,yield_us=500\""},
    {"UNISONO_THREADS", "1", "How many threads of a rank move a long call; all ranks alike"},
    {"UNISONO_ACCURACY", "0",
     "The error that sums of f32 bear between hosts, such as 0.01; all ranks alike"},
    {"UNISONO_CUDA", "libcuda.so.1", "The driver that collectives on device memory call"},
    {"UNISONO_RECORD", "", "Record operations and messages: a folder for unisono trace merge"},
    {"UNISONO_RECORD_EVENTS", "32768", "How many events a rank keeps, the newest; 32 bytes each"},
    {"UNISONO_REPLACE_GLOO", "0", "1: PyTorch programs that ask for gloo get unisono"},
    {"UNISONO_QUIET", "0", "1: do not report on stderr when other ranks are slow to start"},
    {"UNISONO_LANG", "",
     "zh or en: language of the overview and of frequent errors; else the locale's"},
    {"UNISONO_COLOR", "auto", "Colour in the terminal: auto, always or never"},
}};

// Also TIMEOUT_MS for TIMEOUT: a variable whose unit is left out.
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
  // The common prefix must not make everything look near, so only what follows it is compared.
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
    std::string warning = std::string(name) + " is set, but unisono knows no such variable";
    if (const auto near = nearest(name.substr(kPrefix.size()), endings); !near.empty()) {
      warning.append("; did you mean ").append(kPrefix).append(near).append("?");
    }
    warnings.push_back(std::move(warning));
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

}  // namespace unisono
