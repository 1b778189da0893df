// Compares `unisono bench moe` with the textbook method over an MPI library: pack, counts,
// MPI_Alltoallv, permute. Both run alternately in the same processes. Start it with that library's
// mpirun. The optional argument is a file with a router's choices.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "bench/moe.h"

namespace {

using unisono::cli::TextbookExchange;

std::vector<int> in_ints(std::span<const std::size_t> counts) {
  return {counts.begin(), counts.end()};
}

std::vector<int> starts_of(const std::vector<int>& counts) {
  std::vector<int> starts(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  return starts;
}

TextbookExchange mpi_exchange() {
  return {.name = UNISONO_MPI_NAME " MPI_Alltoallv",
          .counts =
              [](std::span<const std::size_t> send, std::span<std::size_t> receive) {
                MPI_Alltoall(send.data(), 1, MPI_UINT64_T, receive.data(), 1, MPI_UINT64_T,
                             MPI_COMM_WORLD);
              },
          .rows =
              [](std::span<const std::byte> in, std::span<const std::size_t> send,
                 std::span<std::byte> out, std::span<const std::size_t> receive) {
                const std::vector<int> to = in_ints(send);
                const std::vector<int> from = in_ints(receive);
                MPI_Alltoallv(in.data(), to.data(), starts_of(to).data(), MPI_BYTE, out.data(),
                              from.data(), starts_of(from).data(), MPI_BYTE, MPI_COMM_WORLD);
              }};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  try {
    auto comm = unisono::Communicator::connect();
    status = unisono::cli::run_bench_moe(comm, argc > 1 ? argv[1] : "", mpi_exchange());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  MPI_Finalize();
  return status;
}
