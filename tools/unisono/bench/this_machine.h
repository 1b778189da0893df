// Facts about this machine that a reader of times needs, and about the terminal of the page.
#pragma once

#include <cstdint>
#include <string>

namespace unisono::cli {

std::string cpu_model();           // "": the system does not report it
std::uint64_t last_cache_bytes();  // the size of the last cache level; 0: unknown
int online_cpus();
// Processor seconds that all processes of this machine, and others of its host, have used since its
// start (proc(5), /proc/stat); 0 if the system does not report them.
double used_cpu_s();
// Processor seconds of this process.
double own_cpu_s();

// Returns true if the locale's characters are UTF-8.
bool terminal_has_unicode();
// Returns how to call this program from the current folder.
std::string own_path();

}  // namespace unisono::cli
