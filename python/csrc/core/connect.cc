// Creates ranks as connecting processes or as threads of one process, and handles Ctrl-C meanwhile.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/signals.h"
#include "communicator.h"

namespace unisono_python {
namespace {

constexpr std::chrono::milliseconds kAskEvery{100};

// Runs `body` on a separate thread, so that Python can handle signals, which it does only on the
// main thread. If a handler raises an exception, sets `interrupted` and throws the exception after
// `body` has ended.
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
      // Any signal handler may run here; its exception ends the rendezvous.
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

// Runs the ranks' threads, and collects the values that body() returns or the exception that it
// raises.
struct ThreadRanks {
  const py::function& body;
  std::vector<py::object> values;
  std::exception_ptr raised = nullptr;  // guarded by the GIL

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

// Returns the ranks' values. Throws the first error of any rank.
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

// Options that are strings, with their names in Python.
constexpr std::pair<const char*, std::string unisono::ConnectOptions::*> kTexts[] = {
    {"job", &unisono::ConnectOptions::job},
    {"token", &unisono::ConnectOptions::token},
    {"file", &unisono::ConnectOptions::file},
    {"algorithm", &unisono::ConnectOptions::algorithm},
    {"profile", &unisono::ConnectOptions::profile},
    {"address", &unisono::ConnectOptions::address},
    {"interface", &unisono::ConnectOptions::interface},
    {"ports", &unisono::ConnectOptions::ports},
    {"host", &unisono::ConnectOptions::host},
};
constexpr std::pair<const char*, int unisono::ConnectOptions::*> kNumbers[] = {
    {"connect_timeout_ms", &unisono::ConnectOptions::connect_timeout_ms},
    {"timeout_ms", &unisono::ConnectOptions::timeout_ms},
    {"threads", &unisono::ConnectOptions::threads},
};

constexpr std::pair<const char*, double unisono::ConnectOptions::*> kReals[] = {
    {"max_error", &unisono::ConnectOptions::max_error},
};

constexpr std::pair<const char*, int unisono::WaitOptions::*> kWaits[] = {
    {"wait_spin", &unisono::WaitOptions::spin},
    {"wait_yield_us", &unisono::WaitOptions::yield_us},
};

constexpr std::pair<std::string_view, unisono::TransportKind> kTransports[] = {
    {"auto", unisono::TransportKind::automatic},
    {"shm", unisono::TransportKind::shm},
    {"tcp", unisono::TransportKind::tcp},
};

// Throws py::cast_error for any value but None, True and False.
std::optional<bool> flag_of(const py::handle& value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  if (!py::isinstance<py::bool_>(value)) {
    throw py::cast_error();
  }
  return value.cast<bool>();
}

// Throws py::cast_error for any value but None and the texts of kTransports.
std::optional<unisono::TransportKind> transport_of(const py::handle& value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  const auto text = value.cast<std::string>();
  for (const auto& [name, kind] : kTransports) {
    if (text == name) {
      return kind;
    }
  }
  throw py::cast_error();
}

// Wraps Python's bootstrap(mine), whose texts are bytes. The wrapper can be called and destroyed on
// any thread.
std::function<std::vector<std::string>(const std::string&)> bootstrap_of(const py::handle& given) {
  if (given.is_none()) {
    return nullptr;
  }
  const std::shared_ptr<py::function> call(
      new py::function(py::reinterpret_borrow<py::function>(given)), [](const py::function* held) {
        const py::gil_scoped_acquire locked;
        delete held;
      });
  return [call](const std::string& mine) {
    const py::gil_scoped_acquire locked;
    std::vector<std::string> texts;
    const py::object all = (*call)(py::bytes(mine));
    if (!py::isinstance<py::sequence>(all)) {
      throw py::type_error("bootstrap() must return the bytes of each rank");
    }
    for (const py::handle text : all) {
      if (!py::isinstance<py::bytes>(text)) {
        throw py::type_error("bootstrap() must return the bytes of each rank");
      }
      texts.push_back(text.cast<std::string>());
    }
    return texts;
  };
}

// Sets the option with this name. Returns false if the table does not have the name.
template <class Table, class Options, class Convert>
bool take(const Table& table, Options& options, const std::string& name, const Convert& convert) {
  for (const auto& [known, member] : table) {
    if (name == known) {
      options.*member = convert();
      return true;
    }
  }
  return false;
}

unisono::ConnectOptions options_of(const char* function, const py::kwargs& given) {
  unisono::ConnectOptions options{.interrupted = unisono_signals::is_interrupted};
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    const auto text = [&value] {  // or a path; None means unset
      return value.is_none() ? std::string()
                             : py::module_::import("os").attr("fspath")(value).cast<std::string>();
    };
    try {
      const auto number = [&value] { return value.cast<int>(); };
      if (take(kTexts, options, name, text) || take(kNumbers, options, name, number) ||
          take(kWaits, options.wait, name, number) ||
          take(kReals, options, name, [&value] { return value.cast<double>(); })) {
        continue;
      }
      if (name == "transport") {
        options.transport = transport_of(value);
        continue;
      }
      if (name == "checksum") {
        options.checksum = flag_of(value);
        continue;
      }
    } catch (const std::exception&) {
      throw py::type_error(std::string(function) + "() does not accept " +
                           py::repr(value).cast<std::string>() + " as " + name);
    }
    throw py::type_error(std::string(function) + "() has no option '" + name + "'");
  }
  return options;
}

}  // namespace

void define_connecting(py::module_& module) {
  using py::arg;
  module.def(
      "connect",
      [](int rank, int size, const py::kwargs& given) {
        py::object bootstrap = py::none();
        if (given.contains("bootstrap")) {
          bootstrap = given["bootstrap"];
          given.attr("pop")("bootstrap");
        }
        unisono::ConnectOptions options = options_of("connect", given);
        if (!bootstrap.is_none() && !PyCallable_Check(bootstrap.ptr())) {
          throw py::type_error("connect() does not accept " +
                               py::repr(bootstrap).cast<std::string>() + " as bootstrap");
        }
        options.bootstrap = bootstrap_of(bootstrap);
        options.rank = rank;
        options.size = size;
        return connect(std::move(options));
      },
      "Joins the world that the arguments and the environment describe (UNISONO_*, torchrun, MPI "
      "launchers, Slurm; without them it has one rank). Blocks until all ranks have joined. The "
      "options are those of C++'s ConnectOptions: texts, paths, numbers and times in ms. "
      "bootstrap(mine: "
      "bytes) -> list of bytes is for ranks that can already communicate, over MPI or a store: it "
      "must give `mine` to all ranks, and return the bytes of all ranks, by rank. It is called "
      "once, on a separate thread.",
      py::kw_only(), arg("rank") = -1, arg("size") = -1);
  module.def(
      "run_threads",
      [](int ranks, const py::function& body, const py::kwargs& given) {
        return run_threads(ranks, body, options_of("run_threads", given));
      },
      "Calls body(comm) on `ranks` ranks, each a thread of this process, and returns their results "
      "in rank order. The first exception is raised, and ends the other ranks. The options are "
      "those of connect().",
      arg("ranks"), arg("body"));
}

}  // namespace unisono_python
