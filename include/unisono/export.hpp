// UNISONO_EXPORT marks a public symbol of the shared library; all other symbols are hidden.
#pragma once

#if defined(__cplusplus)
#define UNISONO_EXPORT [[gnu::visibility("default")]]
#else
#define UNISONO_EXPORT __attribute__((visibility("default")))
#endif
