/* The version of these headers, for the preprocessor of C and C++. unisono_version() returns the
 * version of the running library. */
#pragma once

/* The first number grows if programs must change. */
#define UNISONO_VERSION_MAJOR 0
/* The second number grows with new features. */
#define UNISONO_VERSION_MINOR 1
/* The third number grows with corrections. */
#define UNISONO_VERSION_PATCH 0

/* One number that grows with each version: 1.2.3 is 10203. */
#define UNISONO_VERSION_NUMBER \
  (UNISONO_VERSION_MAJOR * 10000 + UNISONO_VERSION_MINOR * 100 + UNISONO_VERSION_PATCH)
