// UNISONO_PRIVATE marks what libunisono shows to the other libraries of unisono, and to nobody else
// (cmake/install/unisono.map).
#pragma once

#define UNISONO_PRIVATE [[gnu::visibility("default")]]
