// Releases the GIL during the object's lifetime, because the event that this thread waits for may
// need the GIL.
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
