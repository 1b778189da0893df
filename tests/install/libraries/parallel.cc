// A pipeline of one stage, and experts on one rank.
#include <array>
#include <cstdio>
#include <unisono/parallel.hpp>

int main() {
  auto comm = unisono::Communicator::connect();
  const auto schedule =
      unisono::parallel::PipelineSchedule::by_name("gpipe", {.ranks = 1, .microbatches = 2});
  unisono::ExpertExchange exchange(comm, {.experts = 2, .k = 1, .max_tokens = 4});
  const std::array<int, 4> chosen{0, 1, 1, 0};
  const bool right = schedule.stages() == 1 && exchange.route(chosen).rows() == 4 &&
                     unisono::parallel::Mesh::create(comm, "dp=1").rank() == 0;
  std::puts(right ? "parallel: right" : "parallel: wrong");
  return right ? 0 : 1;
}
