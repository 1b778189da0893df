// While it lives this thread does not hold Python's lock, which what it waits for may need.
#pragma once

#include <Python.h>

namespace unisono_signals {

class WithoutPython {
 public:
  WithoutPython()
      : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;
  ~WithoutPython() {
    if (state_ != nullptr) {
      PyEval_RestoreThread(state_);
    }
  }

 private:
  PyThreadState* state_;
};

}  // namespace unisono_signals
