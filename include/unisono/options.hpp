// Options for joining a world and for shrinking it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

inline constexpr int kMostThreads = 256;  // limit of ConnectOptions::threads

// The connections between ranks.
//   automatic  shared memory within a host, TCP between hosts
//   shm        one host only
//   tcp        TCP also between ranks on one host
enum class TransportKind : std::uint8_t { automatic, shm, tcp };

// The waiting policy: a waiting rank polls `spin` times, then yields to other threads for
// `yield_us` microseconds, then sleeps. Smaller numbers leave more CPU time to other threads, but a
// sleeping rank needs some microseconds to wake up. If a member is -1, its value comes from
// UNISONO_WAIT, else from the profile, else from the number of CPUs.
struct WaitOptions {
  int spin = -1;
  int yield_us = -1;
};

// Options of connect(). An unset member (-1, empty, or a time limit with its default value) is read
// from the environment: from its UNISONO_* variable, else from the variables of the launcher. The
// launcher is the first of these whose variables are set: torchrun (RANK, WORLD_SIZE, ...), Open
// MPI (OMPI_COMM_WORLD_*), MPICH and other PMI launchers (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID,
// SLURM_NTASKS). Without a rank and a size from the options or the environment, the world has one
// rank.
struct ConnectOptions {
  int rank = -1;
  int size = -1;
  // The job's name. Ranks with the same job name find each other. Unset: UNISONO_JOB, else a name
  // that is derived from the launcher's job id and port.
  std::string job;
  // A secret of at least 16 characters, which proves that a connection belongs to the job. Unset:
  // UNISONO_TOKEN. Without a token, a rank accepts only processes of the same user on its host.
  // Ranks on several hosts need a token; under Open MPI 4, the job's key serves as the token.
  std::string token;
  // A file that every rank can read and write, through which the ranks find each other. If `rank`
  // is unset, ranks are numbered in the order of their arrival. One host only.
  std::string file;
  // Limit of the time for which connect() waits for all ranks. Within a host, a limit below 1 s
  // counts as 1 s. 0: no limit.
  int connect_timeout_ms = 30'000;
  // Limit of the time for which an operation waits for peers without making progress. 0: no limit.
  int timeout_ms = 300'000;
  // Forces algorithms for collectives: "all_reduce=ring,broadcast=binomial". If a forced algorithm
  // cannot serve a call, the call fails; the library never uses another algorithm instead. Instead
  // of a name, these values are possible:
  // - "mine.json": the schedule in this file.
  // - "reproducible": an algorithm that sums in rank order. The results have the same bits over any
  //   transport, on any hosts, for any length.
  // - "tree_order": an algorithm that sums over a fixed tree (unisono/tree_sum.hpp). Scans have no
  //   tree, and sum in rank order.
  //
  // "reproducible" or "tree_order" alone applies to all reducing collectives.
  std::string algorithm;
  // A file that `unisono tune` wrote, the same on all ranks. The file sets the waiting policy. For
  // groups within one host, the file also selects the number of threads that move the data of a
  // call, and the algorithm of a call if `algorithm` forces none. For groups with ranks on several
  // hosts, a cost model selects the algorithms. "none": the built-in choices. Unset:
  // UNISONO_PROFILE, else $XDG_CONFIG_HOME/unisono/profile.json or ~/.config/unisono/profile.json,
  // if this file exists.
  std::string profile;
  WaitOptions wait = {};
  // For ranks on several hosts: the address "host:port" at which rank 0 listens while the ranks
  // connect, the same on all ranks. Needs a token. Ranks on one host still share memory. Unset:
  // UNISONO_ADDRESS, else the launcher's address if the launcher reports several hosts.
  std::string address;
  // Selects the addresses of this host that other ranks may connect to, by interface or network:
  // "eth0,10.0.0.0/8". "^docker0" selects all interfaces except docker0. Unset: UNISONO_INTERFACE,
  // else the interface that the system uses to reach rank 0.
  std::string interface;
  // The ports that this rank may listen on, "20000-20999". Unset: UNISONO_PORTS, else any.
  std::string ports;
  // Unset: UNISONO_TRANSPORT, else automatic.
  std::optional<TransportKind> transport = {};
  // The name of this rank's host. Ranks with different host names count as ranks on different
  // hosts. Unset: UNISONO_HOST, else the system's identification.
  std::string host;
  // true: each TCP message between hosts carries a CRC-32C. A damaged message ends the connection,
  // and its data never reaches a result. false: no checksum. The same on all ranks. Unset:
  // UNISONO_CHECKSUM, else true.
  std::optional<bool> checksum = {};
  // The default of Call::max_error, the same on all ranks. The default applies only to all_reduce,
  // reduce and reduce_scatter of f32 vectors of at least 16 KiB in groups on several hosts. It does
  // not apply to calls of a Team, to calls with "reproducible", or to calls whose algorithm would
  // round twice. 0: no added rounding. -1: UNISONO_MAX_ERROR, else 0.
  double max_error = -1;
  // The greatest number of threads that move the data of a long blocking call on this rank: the
  // calling thread, and helper threads, which sleep between such calls. 1 to kMostThreads, the same
  // on all ranks. On one host, a profile selects fewer threads if fewer threads are faster. The
  // results have the same bits for any number of threads. Groups with helper threads need more
  // memory. 0: UNISONO_THREADS, else 1 (no helper threads).
  int threads = 0;
  // For ranks on several hosts that can already exchange data through a key-value store or another
  // library. The function receives this rank's text and returns the texts of all ranks, in rank
  // order. connect() calls this function to exchange the ranks' addresses, so no rank listens at
  // `address`. In this case, `address` only selects this rank's own address: the address from which
  // the system reaches `address`, whose port is ignored. Without `address`, this rank uses any of
  // its addresses except a loopback address. If the function throws, connect() rethrows the
  // exception.
  std::function<std::vector<std::string>(const std::string& mine)> bootstrap = nullptr;
  // A thread that waits for peers, in connect() or in an operation, calls this function about ten
  // times a second. This thread may be the progress thread. If the function returns true during
  // connect(), connect() throws aborted. If the function returns true during an operation, the
  // world ends with aborted, as after abort(). The function must not wait for operations, and must
  // not throw.
  std::function<bool()> interrupted = nullptr;
};

// Options of Communicator::shrink().
struct ShrinkOptions {
  // Limit of the wait for ranks that may be alive but have not called shrink(). After this time,
  // the ranks that have called shrink() continue alone. -1: the limit of connect(); 0: no limit.
  int timeout_ms = -1;
  // true: at most one world can follow this world, even if the network separates its hosts. Let R
  // be the ranks that are not proved dead. Ranks may continue only if they are more than half of R,
  // or if they are exactly half of R and include the lowest rank in R. false: all ranks that can
  // reach each other continue.
  bool quorum = true;
};

// Local. Checks the values of the UNISONO_* variables in the environment, and returns a sentence
// for each unknown UNISONO_* variable. Call check_environment() early in a program that connects
// late, or that overrides the environment with options. Addresses and folders are not checked until
// they are used.
// Threads: any.
// Errors: config for the first variable with an invalid value.
UNISONO_EXPORT std::vector<std::string> check_environment();

}  // namespace unisono
