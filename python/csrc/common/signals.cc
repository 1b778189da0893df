#include "signals.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <csignal>

namespace py = pybind11;

namespace unisono_signals {
namespace {

// Returns true if SIGINT has Python's default handler. A program's own handler may want the
// operation to continue.
bool is_default_handler() {
  const auto signals = py::module_::import("signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

}  // namespace

bool is_main_thread() {
  return Py_IsInitialized() != 0 && gettid() == getpid();
}

bool is_interrupted() {
  if (!is_main_thread()) {
    return false;
  }
  const py::gil_scoped_acquire locked;
  if (PyOS_InterruptOccurred() == 0) {
    return false;
  }
  // PyErr_CheckSignals() has cleared the signal. While it is pending, it would interrupt our own
  // Python code.
  bool ends = false;
  try {
    ends = is_default_handler();
  } catch (const py::error_already_set&) {
    ends = false;
  }
  PyErr_SetInterrupt();
  return ends;
}

void throw_if_interrupted() {
  if (!is_main_thread()) {
    return;
  }
  const py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) {
    throw py::error_already_set();
  }
}

}  // namespace unisono_signals
