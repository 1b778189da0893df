// The C interface of teams.
#include "unisono/team.h"

#include "capi/call.h"
#include "comm/handles.h"
#include "unisono/team.hpp"

struct unisono_team_handle {
  unisono::Team team;
};

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside

namespace {

using unisono::Collective;

unisono_result_t run(unisono_team_t team, int thread, Collective collective, const Data& data,
                     int root = 0, unisono_op_t op = UNISONO_SUM) noexcept {
  return guard([&] {
    if (team == nullptr) {
      throw unisono::Error(unisono::ErrorCode::usage,
                           "the team is NULL\nit was never created, or was freed");
    }
    team->team.run(thread, call_of(collective, data, root, op));
  });
}

}  // namespace

unisono_result_t unisono_team_create(int threads, int timeout_ms, unisono_comm_t comm,
                                     unisono_team_t* team) noexcept {
  return guard([&] {
    expect_place(team, "team");
    *team = nullptr;
    core_of(comm);
    unisono::TeamOptions options;
    options.timeout_ms = timeout_ms < 0 ? options.timeout_ms : timeout_ms;
    unisono::Communicator ranks = unisono::detail::Handles::communicator(comm->core);
    *team = new unisono_team_handle{unisono::Team(ranks, threads, options)};
  });
}

unisono_result_t unisono_team_free(unisono_team_t* team) noexcept {
  return guard([&] {
    expect_place(team, "team");
    delete std::exchange(*team, nullptr);
  });
}

unisono_result_t unisono_team_broadcast(void* data, std::size_t count, unisono_dtype_t dtype,
                                        int root, int thread, unisono_team_t team) noexcept {
  return run(team, thread, Collective::broadcast, {data, data, count, dtype}, root);
}

unisono_result_t unisono_team_all_reduce(const void* in, void* out, std::size_t count,
                                         unisono_dtype_t dtype, unisono_op_t op, int thread,
                                         unisono_team_t team) noexcept {
  return run(team, thread, Collective::all_reduce, {in, out, count, dtype}, 0, op);
}

unisono_result_t unisono_team_all_gather(const void* in, void* out, std::size_t count,
                                         unisono_dtype_t dtype, int thread,
                                         unisono_team_t team) noexcept {
  return run(team, thread, Collective::all_gather, {in, out, count, dtype});
}

unisono_result_t unisono_team_reduce_scatter(const void* in, void* out, std::size_t count,
                                             unisono_dtype_t dtype, unisono_op_t op, int thread,
                                             unisono_team_t team) noexcept {
  return run(team, thread, Collective::reduce_scatter, {in, out, count, dtype}, 0, op);
}

unisono_result_t unisono_team_all_to_all(const void* in, void* out, std::size_t count,
                                         unisono_dtype_t dtype, int thread,
                                         unisono_team_t team) noexcept {
  return run(team, thread, Collective::all_to_all, {in, out, count, dtype});
}

unisono_result_t unisono_team_barrier(int thread, unisono_team_t team) noexcept {
  return run(team, thread, Collective::barrier, {});
}
