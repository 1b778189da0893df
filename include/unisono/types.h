/* Types of the C interface: results, enumerations and handles. */
#pragma once

#include <stddef.h>

#include "unisono/export.hpp"

#if defined(__cplusplus)
#define UNISONO_NOEXCEPT noexcept
#define UNISONO_INT : int /* so that any int that C passes is a value of the type */
extern "C" {
#else
#define UNISONO_NOEXCEPT
#define UNISONO_INT
#endif

/* The result of a call. */
typedef enum unisono_result UNISONO_INT {
  UNISONO_SUCCESS = 0,
  UNISONO_USAGE = 1,      /* the caller passed something invalid */
  UNISONO_CONFIG = 2,     /* the environment or the options are wrong or contradict each other */
  UNISONO_CONNECTION = 3, /* ranks could not find each other */
  UNISONO_PEER_LOST = 4,  /* a rank died or left */
  UNISONO_TIMEOUT = 5,    /* a rank did not arrive in time */
  UNISONO_MISMATCH = 6,   /* ranks make different calls */
  UNISONO_ABORTED = 7,    /* a rank called unisono_abort() or unisono_shrink() */
  UNISONO_CORRUPT = 8,    /* damaged file or message */
  UNISONO_RESOURCE = 9,   /* the system refused memory, a descriptor or an address */
  UNISONO_INTERNAL = 10,  /* a defect in unisono */
  UNISONO_EVICTED = 11    /* the other ranks continued without this rank, or may have */
} unisono_result_t;

/* Element types. */
typedef enum unisono_dtype UNISONO_INT {
  UNISONO_I8 = 0,
  UNISONO_U8 = 1,
  UNISONO_I32 = 2,
  UNISONO_U32 = 3,
  UNISONO_I64 = 4,
  UNISONO_U64 = 5,
  UNISONO_F16 = 6,
  UNISONO_BF16 = 7,
  UNISONO_F8E4M3 = 8, /* OCP E4M3: no infinity, overflow gives NaN */
  UNISONO_F8E5M2 = 9, /* OCP E5M2: IEEE-like, overflow gives infinity */
  UNISONO_F32 = 10,
  UNISONO_F64 = 11,
  UNISONO_BOOL = 12 /* one byte, 0 or 1 */
} unisono_dtype_t;

/* Reduce operations. `unisono list --dtypes` prints the dtypes that each operation supports. */
typedef enum unisono_op UNISONO_INT {
  UNISONO_SUM = 0,
  UNISONO_PROD = 1,
  UNISONO_MIN = 2,
  UNISONO_MAX = 3,
  UNISONO_AVG = 4, /* the sum divided by the number of ranks. Integer means truncate towards zero.
                      Only sums of 64-bit integers wrap. In host memory, no float sum overflows */
  UNISONO_BAND = 5,
  UNISONO_BOR = 6,
  UNISONO_BXOR = 7,
  UNISONO_LAND = 8,
  UNISONO_LOR = 9,
  UNISONO_LXOR = 10,
  UNISONO_PREMUL_SUM = 11, /* only in unisono_call_t: the sum of `factor` times each input */
  UNISONO_USER = 12        /* only in unisono_call_t: a function of the caller */
} unisono_op_t;

/* The collective operations. */
typedef enum unisono_collective UNISONO_INT {
  UNISONO_BROADCAST = 0,
  UNISONO_SCATTER = 1,
  UNISONO_GATHER = 2,
  UNISONO_REDUCE = 3,
  UNISONO_ALL_REDUCE = 4,
  UNISONO_ALL_GATHER = 5,
  UNISONO_REDUCE_SCATTER = 6,
  UNISONO_ALL_TO_ALL = 7,
  UNISONO_BARRIER = 8,
  UNISONO_SCATTER_V = 9,
  UNISONO_GATHER_V = 10,
  UNISONO_ALL_GATHER_V = 11,
  UNISONO_REDUCE_SCATTER_V = 12,
  UNISONO_ALL_TO_ALL_V = 13,
  UNISONO_SCAN = 14,
  UNISONO_EXCLUSIVE_SCAN = 15
} unisono_collective_t;

/* The connections between ranks. */
typedef enum unisono_transport UNISONO_INT {
  UNISONO_TRANSPORT_UNSET = -1, /* UNISONO_TRANSPORT of the environment, else automatic */
  UNISONO_TRANSPORT_AUTO = 0,   /* shared memory within a host, TCP between hosts */
  UNISONO_TRANSPORT_SHM = 1,    /* one host only */
  UNISONO_TRANSPORT_TCP = 2     /* TCP also between ranks on one host */
} unisono_transport_t;

/* A receive with this value as `from` accepts a message from any rank. If a receive with the same
 * tag names the sender, that receive gets the message first. */
enum { UNISONO_ANY_SOURCE = -1 };

/* A rank's handle on a group of ranks. */
typedef struct unisono_comm_handle* unisono_comm_t;
/* An operation in progress. unisono_wait() or unisono_wait_received() frees the request. */
typedef struct unisono_request_handle* unisono_request_t;
/* A collective call that has been checked, planned and lowered, and can be started repeatedly. */
typedef struct unisono_plan_handle* unisono_plan_t;
/* Registered memory, which peers on this host read and write directly. */
typedef struct unisono_region_handle* unisono_region_t;

#if defined(__cplusplus)
}
#endif
#undef UNISONO_INT
