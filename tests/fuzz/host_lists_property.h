// The property of any bytes given as the list of a job's hosts: to --hosts, or by Slurm.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bootstrap/launcher_env.h"
#include "cli/failure.h"
#include "run/hosts.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

// Returns the address of rank 0 of a Slurm job on two hosts. Throws Error.
inline std::string address_of_slurm_list(const std::string& list) {
  return comm::resolve({},
                       [&](std::string_view name) -> std::optional<std::string> {
                         return name == "SLURM_STEP_NODELIST" ? std::optional(list)
                                : name == "SLURM_PROCID"      ? std::optional<std::string>("0")
                                : name == "SLURM_STEP_NUM_TASKS" || name == "SLURM_STEP_NUM_NODES"
                                    ? std::optional<std::string>("2")
                                : name == "SLURM_JOB_ID" || name == "SLURM_STEP_ID"
                                    ? std::optional<std::string>("7")
                                    : std::nullopt;
                       })
      .address;
}

inline std::string hosts_property(const std::string& list) {
  if (list.starts_with("@")) {
    return "";  // the name of a file
  }
  try {
    for (const cli::HostRanks& host : cli::parse_hosts(list)) {
      if (host.ranks < 1 || cli::address_of(host).empty() || host.host.front() == '-' ||
          host.host.find_first_of(" \t\r\n,[]") != std::string::npos) {
        return "taken, but not a host with ranks";
      }
    }
    return "";
  } catch (const cli::UsageError& error) {
    return std::string_view(error.what()).empty() ? "refused without a message" : "";
  }
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string host_lists_property(std::string_view text) {
  const std::string list(text);
  try {
    const std::string address = address_of_slurm_list(list);
    if (address.find_first_of("[],") != std::string::npos || address.starts_with(":")) {
      return "Slurm's list gives an address that is none";
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::config || error.summary().empty()) {
      return "Slurm's list is refused without words";
    }
  }
  return hosts_property(list);
}

}  // namespace unisono::fuzz
