// The names of each primitive in other libraries, and the least that the busiest rank sends, for D
// bytes on n ranks.

export const CALLS: Record<string, string[]> = {
  broadcast: ['torch.distributed.broadcast', 'ncclBroadcast', 'MPI_Bcast'],
  scatter: ['torch.distributed.scatter', 'ncclScatter', 'MPI_Scatter'],
  gather: ['torch.distributed.gather', 'ncclGather', 'MPI_Gather'],
  reduce: ['torch.distributed.reduce', 'ncclReduce', 'MPI_Reduce'],
  all_reduce: ['torch.distributed.all_reduce', 'ncclAllReduce', 'MPI_Allreduce'],
  all_gather: ['torch.distributed.all_gather_into_tensor', 'ncclAllGather', 'MPI_Allgather'],
  reduce_scatter: [
    'torch.distributed.reduce_scatter_tensor',
    'ncclReduceScatter',
    'MPI_Reduce_scatter_block',
  ],
  all_to_all: ['torch.distributed.all_to_all_single', 'ncclAlltoAll', 'MPI_Alltoall'],
  barrier: ['torch.distributed.barrier', 'MPI_Barrier'],
  send_recv: ['torch.distributed.send, recv', 'ncclSend, ncclRecv', 'MPI_Send, MPI_Recv'],
};

export const LEAST_CARRIED: Record<string, string> = {
  broadcast: 'D',
  scatter: '(n−1)/n · D',
  gather: '(n−1)/n · D',
  reduce: 'D',
  all_reduce: '2(n−1)/n · D',
  all_gather: '(n−1)/n · D',
  reduce_scatter: '(n−1)/n · D',
  all_to_all: '(n−1)/n · D',
  barrier: '0',
};

export const CHINESE_NAMES: Record<string, string> = {
  ...{ broadcast: '广播', scatter: '散播', gather: '收集', reduce: '规约' },
  ...{ all_reduce: '全规约', all_gather: '全收集', reduce_scatter: '规约散播' },
  ...{ all_to_all: '全交换', barrier: '屏障', send_recv: '点对点' },
};
