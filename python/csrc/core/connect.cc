// How ranks come to be: processes that meet, threads of one, and Ctrl-C meanwhile.
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <future>
#include <thread>

#include "common/signals.h"
#include "communicator.h"

namespace unisono_python {
namespace {

constexpr std::chrono::milliseconds kAskEvery{100};

// Runs `body` on a thread of its own and lets Python handle signals meanwhile, which it does in the
// main thread alone. `interrupted` is set when one has raised an exception, which is thrown in the
// end.
void run_beside_signals(const std::function<void()>& body, std::atomic<bool>& interrupted) {
  std::packaged_task<void()> task(body);
  auto future = task.get_future();
  std::thread thread(std::move(task));
  std::exception_ptr raised;
  while (future.wait_for(kAskEvery) != std::future_status::ready) {
    try {
      unisono_signals::throw_if_interrupted();
    } catch (...) {
      raised = std::current_exception();
      interrupted = true;
    }
  }
  thread.join();
  if (raised != nullptr) {
    std::rethrow_exception(raised);
  }
  future.get();
}

std::shared_ptr<Comm> connect(unisono::ConnectOptions options) {
  std::optional<unisono::Communicator> made;
  {
    const py::gil_scoped_release unlocked;
    if (unisono_signals::is_main_thread()) {
      // Any handler may run, and what it raises ends the meeting.
      const auto interrupted = std::make_shared<std::atomic<bool>>(false);
      options.interrupted = [interrupted] {
        return *interrupted || unisono_signals::is_interrupted();
      };
      run_beside_signals([&] { made = unisono::Communicator::connect(options); }, *interrupted);
    } else {
      made = unisono::Communicator::connect(options);
    }
  }
  return adopt(std::move(*made));
}

// What a rank's thread does: the value that body() returns, or what it raises.
struct ThreadRanks {
  const py::function& body;
  std::vector<py::object> values;
  std::exception_ptr raised = nullptr;  // guarded by Python's lock

  void run(unisono::Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const py::gil_scoped_acquire locked;
    std::shared_ptr<Comm> comm = adopt(std::move(communicator));
    try {
      values[rank] = body(comm);
    } catch (const py::error_already_set& error) {
      if (raised == nullptr) {
        raised = std::current_exception();
      }
      comm->abort(error.what());
    }
    comm->close();
  }
};

// The ranks' values. The first error of any rank is raised.
py::list run_threads(int ranks, const py::function& body, unisono::ConnectOptions options) {
  ThreadRanks state{
      .body = body,
      .values = std::vector<py::object>(static_cast<std::size_t>(std::max(ranks, 0)), py::none())};
  std::atomic<bool> interrupted = false;
  options.interrupted = [&interrupted] { return interrupted.load(); };
  {
    const py::gil_scoped_release unlocked;
    try {
      run_beside_signals(
          [&] {
            unisono::run_threads(
                ranks, [&](unisono::Communicator& communicator) { state.run(communicator); },
                options);
          },
          interrupted);
    } catch (const unisono::Error&) {
      if (state.raised == nullptr) {
        state.raised = std::current_exception();
      }
    }
  }
  if (state.raised != nullptr) {
    std::rethrow_exception(state.raised);
  }
  return py::cast(state.values);
}

unisono::ConnectOptions options_of(int rank, int size, const std::string& job,
                                   const std::string& token,
                                   const std::optional<std::filesystem::path>& file,
                                   int connect_timeout_ms, int timeout_ms,
                                   const std::string& algorithm, const std::string& profile,
                                   const std::string& wait) {
  return {.rank = rank,
          .size = size,
          .job = job,
          .token = token,
          .file = file.value_or("").string(),
          .connect_timeout_ms = connect_timeout_ms,
          .timeout_ms = timeout_ms,
          .algorithm = algorithm,
          .profile = profile,
          .wait = wait,
          .interrupted = unisono_signals::is_interrupted};
}

}  // namespace

void define_connecting(py::module_& module) {
  using py::arg;
  const auto with_options = [&module](const char* name, auto function, const char* doc,
                                      const auto&... extra) {
    module.def(name, function, extra..., arg("job") = "", arg("token") = "",
               arg("file") = py::none(), arg("connect_timeout_ms") = 30'000,
               arg("timeout_ms") = 300'000, arg("algorithm") = "", arg("profile") = "",
               arg("wait") = "", doc);
  };
  with_options(
      "connect",
      [](int rank, int size, const std::string& job, const std::string& token,
         const std::optional<std::filesystem::path>& file, int connect_timeout_ms, int timeout_ms,
         const std::string& algorithm, const std::string& profile, const std::string& wait) {
        return connect(options_of(rank, size, job, token, file, connect_timeout_ms, timeout_ms,
                                  algorithm, profile, wait));
      },
      "Joins the world that the arguments and the environment describe (UNISONO_*, torchrun, MPI "
      "launchers, Slurm; with none of them it has one rank); blocks until all ranks are there.",
      py::kw_only(), arg("rank") = -1, arg("size") = -1);
  with_options(
      "run_threads",
      [](int ranks, const py::function& body, const std::string& job, const std::string& token,
         const std::optional<std::filesystem::path>& file, int connect_timeout_ms, int timeout_ms,
         const std::string& algorithm, const std::string& profile, const std::string& wait) {
        return run_threads(ranks, body,
                           options_of(-1, -1, job, token, file, connect_timeout_ms, timeout_ms,
                                      algorithm, profile, wait));
      },
      "Calls body(comm) on `ranks` ranks, each a thread of this process, and returns what they "
      "return, in the order of ranks. The first exception is raised, and ends the other ranks.",
      arg("ranks"), arg("body"), py::kw_only());
}

}  // namespace unisono_python
