// How a rank joins its world.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

inline constexpr int kMostThreads = 256;  // ConnectOptions::threads

// What is left unset is read from the environment, in this order: UNISONO_*, torchrun (RANK,
// WORLD_SIZE, ...), Open MPI (OMPI_COMM_WORLD_*), MPICH and other PMI launchers (PMI_RANK,
// PMI_SIZE), Slurm (SLURM_PROCID, SLURM_NTASKS). With none of them the world has one rank.
struct ConnectOptions {
  int rank = -1;
  int size = -1;
  // Names the job: ranks with the same name find each other. Unset: from the launcher's job id
  // and port.
  std::string job;
  // Job token: at least 16 characters; proves that a connection belongs to the job. Unset:
  // UNISONO_TOKEN; with neither, only processes of the same user are let in, on one host. Ranks of
  // several hosts need one; under Open MPI 4 the key of the job serves as such.
  std::string token;
  // A file that every rank can read and write, as the meeting point instead of the environment;
  // with it, a missing `rank` is assigned in the order of arrival. On one host only.
  std::string file;
  int connect_timeout_ms = 30'000;
  // The longest that one operation may wait for its peers. 0: for ever.
  int timeout_ms = 300'000;
  // Forces one algorithm for a collective: "all_reduce=ring,broadcast=binomial", or a schedule from
  // a file: "all_reduce=mine.json". One that cannot serve is an error at the call, never replaced.
  // "reproducible" in the place of an algorithm takes one that sums in the order of the ranks: the
  // same bits over any transport, on any hosts, whatever the length. Alone it stands for all
  // collectives that reduce.
  std::string algorithm;
  // What `unisono tune` has measured: the file that chooses algorithms where none is forced, and
  // how many of `threads` move a call; the same on all ranks; "none" for the built-in choice.
  // Groups with ranks on several hosts choose by a model of these hosts, and take from it only how
  // to wait. Unset: UNISONO_PROFILE, else $XDG_CONFIG_HOME/unisono/profile.json or
  // ~/.config/unisono/profile.json if it is there.
  std::string profile;
  // How this rank waits for its peers: "spin=3000,yield_us=500" looks 3000 times, then gives way to
  // other threads for 500 us, then sleeps. Less of either leaves CPU time to others, and costs a
  // wake-up of some microseconds. Unset: UNISONO_WAIT, else the profile, else by the CPUs there
  // are.
  std::string wait;
  // For ranks on several hosts: where rank 0 listens while they meet, "host:port", the same on all
  // ranks. They need a token then. Unset: UNISONO_ADDRESS, else what the launcher says, where it
  // says that there are several hosts. Ranks of one host still share memory.
  std::string address;
  // Which addresses of this host others may connect to: names of interfaces and networks,
  // "eth0,10.0.0.0/8", or "^docker0" for all but one. Unset: UNISONO_INTERFACE, else the one that
  // the system would use to reach rank 0.
  std::string interface;
  // The ports at which this rank may listen, "20000-20999". Unset: UNISONO_PORTS, else any.
  std::string ports;
  // "auto": shared memory inside of hosts, TCP between them. "shm": one host only. "tcp": also
  // between ranks of one host. Unset: UNISONO_TRANSPORT, else auto.
  std::string transport;
  // Ranks with different names count as being on different hosts. Unset: UNISONO_HOST, else the
  // hosts are told apart by what the system says.
  std::string host;
  // "1": between hosts, over TCP, each message carries a CRC-32C; damage on the way ends the
  // connection and is never a result. "0": none. All ranks alike. Unset: UNISONO_CHECKSUM, else 1.
  std::string checksum;
  // The accuracy of sums of f32 whose calls say none (Call::accuracy), the same on all ranks: of
  // all_reduce, reduce and reduce_scatter on ranks of several hosts, of vectors from 16 KiB on. All
  // other calls stay exact, and so do those of a team, "reproducible" ones, and those with an
  // algorithm that would round twice. 0: nothing is rounded. -1: UNISONO_ACCURACY, else 0.
  double accuracy = -1;
  // How many threads of this rank move a long blocking call at most: the caller, and helpers that
  // sleep otherwise; the same number on all ranks, 1 to kMostThreads. On one host a profile may
  // know that fewer are quicker. Results have the same bits with any number. Groups with helpers
  // take more memory. 0: UNISONO_THREADS, else 1, no helpers.
  int threads = 0;
  // For ranks of several hosts that can talk already, over a key-value store or another library:
  // tells all ranks the text of this one, and returns the texts of all, by rank. They meet through
  // it then, and nobody listens at `address`, which only says in whose direction (the port does not
  // matter) this rank's own address is to be; without one it is any that is not a loopback. What
  // this function throws, connect() throws.
  std::function<std::vector<std::string>(const std::string& mine)> exchange = nullptr;
  // Asked about ten times a second by a thread that waits for its peers, in connect() or in an
  // operation, possibly the progress thread: true ends the meeting, or the world as abort() does,
  // with the error `aborted`. It must not wait for operations, nor throw.
  std::function<bool()> interrupted = nullptr;
};

// How a world goes on without the ranks that it has lost.
struct ShrinkOptions {
  // How long to wait for ranks that may live and have not called shrink(); then the others go on
  // without them. -1: as long as to connect; 0: for ever.
  int timeout_ms = -1;
  // Whether at most one world may come of this one, also where the network has parted its hosts:
  // then those ranks go on that are more than half of all that are not proved to be dead, or just
  // half with the lowest of them. false: whoever is there goes on.
  bool quorum = true;
};

// For programs that connect long after they have begun, or give options where the environment says
// something else: throws the Error (config) of the first UNISONO_* variable whose value can be that
// of no program. What an address or a folder leads to is seen when it is used. Returns a sentence
// for each UNISONO_* in the environment that does not exist.
UNISONO_EXPORT std::vector<std::string> check_environment();

}  // namespace unisono
