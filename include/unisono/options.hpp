// Options for joining a world and for shrinking it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

inline constexpr int kMostThreads = 256;  // ConnectOptions::threads

// The connections between ranks.
//   automatic  shared memory within a host, TCP between hosts
//   shm        one host only
//   tcp        TCP also between ranks on one host
enum class TransportKind : std::uint8_t { automatic, shm, tcp };

// The waiting policy: a rank polls `spin` times, then yields to other threads for `yield_us`
// microseconds, then sleeps. Smaller numbers leave more CPU time to others and cost a wake-up of
// some microseconds. A member that is -1 is read from UNISONO_WAIT, else from the profile, else
// chosen by the number of CPUs.
struct WaitOptions {
  int spin = -1;
  int yield_us = -1;
};

// Options of connect(). Members that are unset (-1, empty, or a time limit at its default) are read
// from the environment, in this order: UNISONO_*, torchrun (RANK, WORLD_SIZE, ...), Open MPI
// (OMPI_COMM_WORLD_*), MPICH and other PMI launchers (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID,
// SLURM_NTASKS). With none of them the world has one rank.
struct ConnectOptions {
  int rank = -1;
  int size = -1;
  // The job's name: ranks with the same name find each other. Unset: derived from the launcher's
  // job id and port.
  std::string job;
  // The job's token, at least 16 characters: proves that a connection belongs to the job. Unset:
  // UNISONO_TOKEN. Without either, only processes of the same user on one host are accepted. Ranks
  // on several hosts need a token; under Open MPI 4 the job's key serves as one.
  std::string token;
  // A file that every rank can read and write, used as the meeting point instead of the
  // environment. With it, a missing `rank` is assigned in the order of arrival. One host only.
  std::string file;
  // Limit for connect() to wait for all ranks, which allows at least 1 s within a host. 0: no
  // limit.
  int connect_timeout_ms = 30'000;
  // Limit for one operation to wait for its peers without progress. 0: no limit.
  int timeout_ms = 300'000;
  // Forces an algorithm for a collective, "all_reduce=ring,broadcast=binomial", or a schedule from
  // a file, "all_reduce=mine.json". If it cannot serve a call, the call fails; it is never
  // replaced. "reproducible" instead of an algorithm selects one that sums in rank order: the
  // results have the same bits over any transport, on any hosts, for any length. "tree_order" sums
  // over a fixed tree (unisono/tree_sum.hpp). Either of them alone applies to all reducing
  // collectives; scans, which have no tree, then sum in rank order.
  std::string algorithm;
  // A file that `unisono tune` wrote, the same on all ranks. For each call, it selects the
  // algorithm, unless one is forced, and how many of the `threads` move the data. "none": the
  // built-in choices. For groups with ranks on several hosts, a cost model selects the algorithms,
  // and the file only sets the waiting policy. Unset: UNISONO_PROFILE, else
  // $XDG_CONFIG_HOME/unisono/profile.json or ~/.config/unisono/profile.json if it exists.
  std::string profile;
  WaitOptions wait = {};
  // For ranks on several hosts: the address "host:port" where rank 0 listens while the ranks
  // connect, the same on all ranks. Needs a token. Unset: UNISONO_ADDRESS, else the launcher's, if
  // it reports several hosts. Ranks on one host still share memory.
  std::string address;
  // The addresses of this host that other ranks may connect to, as names of interfaces and
  // networks: "eth0,10.0.0.0/8", or "^docker0" for all but one. Unset: UNISONO_INTERFACE, else the
  // interface that the system uses to reach rank 0.
  std::string interface;
  // The ports that this rank may listen on, "20000-20999". Unset: UNISONO_PORTS, else any.
  std::string ports;
  // Unset: UNISONO_TRANSPORT, else automatic.
  std::optional<TransportKind> transport = {};
  // Ranks with different names count as being on different hosts. Unset: UNISONO_HOST, else the
  // system's identification.
  std::string host;
  // true: each TCP message between hosts carries a CRC-32C; a damaged message ends the connection
  // and never becomes a result. false: no checksum. The same on all ranks. Unset: UNISONO_CHECKSUM,
  // else true.
  std::optional<bool> checksum = {};
  // The default of Call::max_error, the same on all ranks. It applies to all_reduce, reduce and
  // reduce_scatter of f32 vectors of at least 16 KiB on ranks of several hosts. All other calls
  // stay exact, and so do a team's calls, "reproducible" ones, and calls with an algorithm that
  // would round twice. 0: no rounding. -1: UNISONO_MAX_ERROR, else 0.
  double max_error = -1;
  // The most threads of this rank that move a long blocking call: the caller, and helpers that
  // otherwise sleep. 1 to kMostThreads, the same on all ranks. On one host a profile may use fewer
  // if they are faster. The results have the same bits for any number. Groups with helpers take
  // more memory. 0: UNISONO_THREADS, else 1 (no helpers).
  int threads = 0;
  // For ranks on several hosts that can already communicate, over a key-value store or another
  // library: takes this rank's text and returns the texts of all ranks, by rank. The ranks then
  // connect through it, and nobody listens at `address`, which only selects this rank's own address
  // by its direction (the port is ignored); without `address` any address but a loopback is used.
  // connect() rethrows what this function throws.
  std::function<std::vector<std::string>(const std::string& mine)> bootstrap = nullptr;
  // Called about ten times a second by a thread that waits for its peers, in connect() or in an
  // operation, possibly the progress thread. If it returns true, connect() fails, or the world ends
  // as with abort(), with the error `aborted`. It must not wait for operations, nor throw.
  std::function<bool()> interrupted = nullptr;
};

// Options of Communicator::shrink().
struct ShrinkOptions {
  // Limit of the wait for ranks that may be alive and have not called shrink(); after that the
  // others continue without them. -1: as long as for connecting; 0: no limit.
  int timeout_ms = -1;
  // true: at most one world can follow this one, even if the network separates its hosts. The ranks
  // that continue are more than half of all ranks not proved dead, or exactly half including the
  // lowest of them. false: all ranks that can reach each other continue.
  bool quorum = true;
};

// Local. Checks the UNISONO_* variables of the environment. For programs that connect long after
// their start, or that give options which override the environment. Returns a sentence for each
// unknown UNISONO_* variable. Addresses and folders are checked only when they are used.
// Threads: any.
// Errors: config for the first variable with an invalid value.
UNISONO_EXPORT std::vector<std::string> check_environment();

}  // namespace unisono
