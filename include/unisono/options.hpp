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
// microseconds, then sleeps. Smaller numbers leave more CPU time to other threads, but a rank that
// sleeps needs some microseconds to wake up. If a member is -1, its value comes from UNISONO_WAIT,
// else from the profile, else from the number of CPUs.
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
  // Limit of the time that connect() waits for all ranks. Within a host, a limit below 1 s counts
  // as 1 s. 0: no limit.
  int connect_timeout_ms = 30'000;
  // Limit of the time that one operation waits for its peers without progress. 0: no limit.
  int timeout_ms = 300'000;
  // Forces an algorithm for a collective, "all_reduce=ring,broadcast=binomial", or a schedule from
  // a file, "all_reduce=mine.json". If the forced algorithm cannot serve a call, the call fails;
  // the library never uses another algorithm instead. "reproducible" instead of a name selects an
  // algorithm that sums in rank order: the results have the same bits over any transport, on any
  // hosts, for any length. "tree_order" sums over a fixed tree (unisono/tree_sum.hpp). Either word
  // alone applies to all reducing collectives. Scans have no tree; with "tree_order" they sum in
  // rank order.
  std::string algorithm;
  // A file that `unisono tune` wrote, the same on all ranks. For each call, it selects the
  // algorithm, unless one is forced, and how many of the `threads` move the data. "none": the
  // built-in choices. For groups with ranks on several hosts, a cost model selects the algorithms,
  // and the file only sets the waiting policy. Unset: UNISONO_PROFILE, else
  // $XDG_CONFIG_HOME/unisono/profile.json or ~/.config/unisono/profile.json if it exists.
  std::string profile;
  WaitOptions wait = {};
  // For ranks on several hosts: the address "host:port" where rank 0 listens while the ranks
  // connect, the same on all ranks. Needs a token. Unset: UNISONO_ADDRESS, else the launcher's
  // address, if the launcher reports several hosts. Ranks on one host still share memory.
  std::string address;
  // The addresses of this host that other ranks may connect to, as names of interfaces and
  // networks: "eth0,10.0.0.0/8", or "^docker0" for all but this interface. Unset:
  // UNISONO_INTERFACE, else the interface that the system uses to reach rank 0.
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
  // stay exact. Calls of a team, calls with "reproducible", and calls with an algorithm that would
  // round twice always stay exact. 0: no rounding. -1: UNISONO_MAX_ERROR, else 0.
  double max_error = -1;
  // The most threads of this rank that move the data of a long blocking call: the caller, and
  // helper threads, which sleep otherwise. 1 to kMostThreads, the same on all ranks. On one host a
  // profile may select fewer threads where these are faster. The results have the same bits for any
  // number of threads. Groups with helpers take more memory. 0: UNISONO_THREADS, else 1 (no
  // helpers).
  int threads = 0;
  // For ranks on several hosts that can already communicate, over a key-value store or another
  // library. The function takes this rank's text and returns the texts of all ranks, by rank. The
  // ranks then connect through this function, and nobody listens at `address`. `address` only
  // selects which of its own addresses this rank uses: the one from which the system reaches
  // `address`; the port is ignored. Without `address`, any address but a loopback is used. If this
  // function throws, connect() rethrows the exception.
  std::function<std::vector<std::string>(const std::string& mine)> bootstrap = nullptr;
  // A thread that waits for its peers, in connect() or in an operation, calls this function about
  // ten times a second. This may be the progress thread. If the function returns true during
  // connect(), connect() fails with `aborted`. If it returns true during an operation, the world
  // ends with `aborted`, as after abort(). The function must not wait for operations, and must not
  // throw.
  std::function<bool()> interrupted = nullptr;
};

// Options of Communicator::shrink().
struct ShrinkOptions {
  // Limit of the wait for ranks that may be alive and have not called shrink(). After this time the
  // other ranks continue without them. -1: the limit of connect(); 0: no limit.
  int timeout_ms = -1;
  // true: at most one world can follow this world, even if the network separates its hosts. Count
  // the ranks that are not proved dead: only more than half of them may continue, or exactly half
  // if these include the lowest rank. false: all ranks that can reach each other continue.
  bool quorum = true;
};

// Local. Checks the UNISONO_* variables of the environment, and returns a sentence for each unknown
// UNISONO_* variable. Use it in a program that connects long after its start, or whose options
// override the environment. Addresses and folders are checked only when they are used.
// Threads: any.
// Errors: config for the first variable with an invalid value.
UNISONO_EXPORT std::vector<std::string> check_environment();

}  // namespace unisono
