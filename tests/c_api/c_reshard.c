/* Reshards: rows become columns, with gaps between them, and a rank gets no part; mistakes. */
#include "unisono/reshard.h"

#include <string.h>

#include "c_program.h"

enum { kRows = 6, kColumns = 5 };

static const size_t shape[2] = {kRows, kColumns};

static float element(size_t row, size_t column) {
  return (float)(row * 100 + column);
}

/* Rank 2 has no part before, and rank 0 has none after. */
void run_reshard(unisono_comm_t comm) {
  unisono_reshard_tensor_t tensors[2] = {UNISONO_RESHARD_TENSOR_INIT, UNISONO_RESHARD_TENSOR_INIT};
  const int rank = unisono_rank(comm);
  unisono_reshard_t reshard = NULL;
  unisono_reshard_memory_t memory = UNISONO_RESHARD_MEMORY_INIT;
  unisono_reshard_part_t part = UNISONO_RESHARD_PART_INIT;
  float rows[kRows / 2 * kColumns];
  float columns[kRows * (kColumns + 1)];
  long long step = 40;
  long long arrived = 0;
  const void* in[2];
  void* out[2];
  ptrdiff_t strides[2] = {kColumns + 1, 1};
  const ptrdiff_t* out_strides[2];
  size_t sent = 0;
  size_t between_hosts = 1;
  size_t width;
  size_t i;
  tensors[0].name = "w";
  tensors[0].shape = shape;
  tensors[0].dimensions = 2;
  tensors[0].from = "tp=2: tp=shard(0)";
  tensors[0].to = "tp=2 on 1-2: tp=shard(1)";
  tensors[1].name = "step";
  tensors[1].dtype = UNISONO_I64;
  tensors[1].from = "a=1";
  tensors[1].to = "a=3";
  SUCCEEDS(unisono_reshard_create(tensors, 2, comm, &reshard));
  SUCCEEDS(unisono_reshard_get_part(0, 0, reshard, &part));
  EXPECT(part.is_held == (rank < 2));
  EXPECT(rank == 2 || (part.dimensions == 2 && part.shape[0] == kRows / 2 &&
                       part.shape[1] == kColumns && part.bytes == sizeof(rows)));
  SUCCEEDS(unisono_reshard_get_part(0, 1, reshard, &part));
  width = rank == 1 ? 2 : 3;
  EXPECT(part.is_held == (rank > 0));
  EXPECT(rank == 0 || (part.shape[0] == kRows && part.shape[1] == width));
  SUCCEEDS(unisono_reshard_get_part(1, 1, reshard, &part));
  EXPECT(part.is_held && part.dimensions == 0 && part.bytes == 8);
  /* Rank 1 has half of its part. */
  SUCCEEDS(unisono_reshard_bytes(reshard, &sent, &between_hosts));
  EXPECT(sent == (3 * 2 + 6 * 3) * sizeof(float) + 2 * sizeof(step));
  EXPECT(between_hosts == 0);
  for (i = 0; i < kRows / 2 * kColumns; ++i) {
    rows[i] = element(i / kColumns + (size_t)(rank == 1 ? kRows / 2 : 0), i % kColumns);
  }
  for (i = 0; i < sizeof(columns) / sizeof(*columns); ++i) {
    columns[i] = -1;
  }
  in[0] = rows;
  in[1] = &step;
  out[0] = columns;
  out[1] = &arrived;
  out_strides[0] = strides;
  out_strides[1] = NULL;
  memory.in = in;
  memory.out = out;
  memory.out_strides = out_strides;
  EXPECT(unisono_reshard_complete(0, reshard) == (rank == 0));
  SUCCEEDS(unisono_reshard_run(&memory, -1, reshard));
  EXPECT(unisono_reshard_complete(0, reshard) && unisono_reshard_complete(1, reshard));
  EXPECT(arrived == 40);
  for (i = 0; i < kRows * (kColumns + 1); ++i) {
    const size_t row = i / (kColumns + 1);
    const size_t column = i % (kColumns + 1);
    const int has = rank > 0 && column < width;
    EXPECT(columns[i] == (has ? element(row, column + (rank == 2 ? 2 : 0)) : -1));
  }
  /* A part without memory: the rank's error names it, and no data is sent. */
  if (rank == 2) {
    out[0] = NULL;
    FAILS(unisono_reshard_run(&memory, -1, reshard), UNISONO_USAGE,
          "usage: reshard: `out` of \"w\" on rank 2 is null\npass memory for f32 [6, 3]");
  } else {
    EXPECT(unisono_reshard_run(&memory, -1, reshard) == UNISONO_MISMATCH);
    EXPECT(strstr(unisono_last_error(), "rank 2") != NULL);
  }
  /* Input and output of rank 1 share memory. */
  out[0] = rank == 1 ? (void*)rows : (void*)columns;
  if (rank == 1) {
    FAILS(unisono_reshard_run(&memory, -1, reshard), UNISONO_USAGE,
          "usage: reshard: `in` of \"w\" and `out` of \"w\" share memory on rank 1\ngive `out` "
          "memory of its own, because other ranks read `in` until the end");
  } else {
    EXPECT(unisono_reshard_run(&memory, -1, reshard) == UNISONO_MISMATCH);
    EXPECT(strstr(unisono_last_error(), "rank 1") != NULL);
  }
  SUCCEEDS(unisono_reshard_free(&reshard));
  EXPECT(reshard == NULL);
}

void run_reshard_mistakes(unisono_comm_t comm) {
  unisono_reshard_tensor_t tensor = UNISONO_RESHARD_TENSOR_INIT;
  unisono_reshard_t reshard = NULL;
  unisono_reshard_memory_t memory = UNISONO_RESHARD_MEMORY_INIT;
  unisono_reshard_part_t part = UNISONO_RESHARD_PART_INIT;
  tensor.name = "w";
  tensor.shape = shape;
  tensor.dimensions = 2;
  tensor.from = "tp=1";
  tensor.to = "tp=1: tp=shard(2)";
  EXPECT(unisono_reshard_create(&tensor, 1, comm, &reshard) == UNISONO_USAGE);
  EXPECT(strstr(unisono_last_error(), "tensor \"w\"") != NULL);
  EXPECT(reshard == NULL);
  tensor.to = "tp";
  EXPECT(unisono_reshard_create(&tensor, 1, comm, &reshard) == UNISONO_CONFIG);
  tensor.to = NULL;
  FAILS(unisono_reshard_create(&tensor, 1, comm, &reshard), UNISONO_USAGE,
        "usage: `to` is NULL\npass the address of the variable that holds it");
  tensor.to = "tp=1";
  tensor.dimensions = 9;
  FAILS(unisono_reshard_create(&tensor, 1, comm, &reshard), UNISONO_USAGE,
        "usage: tensor \"w\" has 9 dimensions\n`shape` is a list of at most 8");
  FAILS(unisono_reshard_run(&memory, -1, reshard), UNISONO_USAGE,
        "usage: the reshard is NULL\nit was never created, or was freed");
  tensor.dimensions = 2;
  SUCCEEDS(unisono_reshard_create(&tensor, 1, comm, &reshard));
  FAILS(unisono_reshard_get_part(1, 0, reshard, &part), UNISONO_USAGE,
        "usage: there is no tensor 1\nthere are 1, counted from 0");
  EXPECT(unisono_reshard_run(&memory, -1, reshard) == UNISONO_USAGE);
  memory.struct_size = 1;
  FAILS(unisono_reshard_run(&memory, -1, reshard), UNISONO_USAGE,
        "usage: struct_size is 1\nstart from UNISONO_RESHARD_MEMORY_INIT");
  SUCCEEDS(unisono_reshard_free(&reshard));
  /* A reshard without tensors. */
  memory.struct_size = sizeof(memory);
  SUCCEEDS(unisono_reshard_create(NULL, 0, comm, &reshard));
  SUCCEEDS(unisono_reshard_run(&memory, -1, reshard));
  SUCCEEDS(unisono_reshard_free(&reshard));
}
