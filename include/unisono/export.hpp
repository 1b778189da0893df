// UNISONO_EXPORT marks what the shared library offers; all else in it is hidden.
#pragma once

#if defined(__cplusplus)
#define UNISONO_EXPORT [[gnu::visibility("default")]]
#else
#define UNISONO_EXPORT __attribute__((visibility("default")))
#endif
