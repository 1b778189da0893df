// UNISONO_PRIVATE marks functions that libunisono exports only to unisono's other libraries
// (cmake/install/unisono.map).
#pragma once

#define UNISONO_PRIVATE [[gnu::visibility("default")]]
