// What findings of a recording say is made in C++, in English. Here are its sentences in Chinese; what
// is not among them stays as it is.

type Pattern = readonly [RegExp, string];

const RANKS = 'ranks? ([\\d ,-]+)';
const WHO = 'rank (\\d+) \\(pid (-?\\d+)\\)';

const SENTENCES: Pattern[] = [
  // "what it owes" is an operation, or a send or recv of its own.
  [new RegExp(`^${WHO} has not called (.+)$`), 'rank $1（pid $2）没有调用 $3'],
  [/^rank (\d+) has not called (.+)$/, 'rank $1 没有调用 $2'],
  [new RegExp(`^${WHO} has entered (.+) and does not go on$`), 'rank $1（pid $2）进入 $3 后停滞'],
  [new RegExp(`^${WHO} has left the world, and owes (.+)$`), 'rank $1（pid $2）已离开，尚欠 $3'],
  [new RegExp(`^${WHO} is gone, and owes (.+)$`), 'rank $1（pid $2）已不存在，尚欠 $3'],
  [new RegExp(`^${WHO} (.+), and owes (.+)$`), 'rank $1（pid $2）$3，尚欠 $4'],
  [new RegExp(`^${WHO} waits for (.+)$`), 'rank $1（pid $2）在等待 $3'],
  [new RegExp(`^${RANKS} waits? for each other$`), 'rank $1 互相等待'],
  [/^rank (\d+) waits for rank (\d+): (.+)$/, 'rank $1 在等 rank $2：$3'],
  [/^operation (#\d+.*) is not the same on all ranks$/, '操作 $1 在各 rank 上不一致'],
  [
    new RegExp(`^${RANKS} (?:is on another host|are on other hosts), and not seen from here$`),
    'rank $1 在其他主机上，此处无法看到',
  ],
  [/^rank (\d+) is gone(?:: (.+))?$/, 'rank $1 已不存在（$2）'],
  [/^rank (\d+) left no recording(?:: (.+))?$/, 'rank $1 没有留下记录（$2）'],
  [/^no rank left a recording$/, '没有 rank 留下记录'],
  [
    new RegExp(`^the beginning is not here: ${RANKS} kept only the newest events$`),
    '缺少开头：rank $1 只保留了最新的事件',
  ],
  [
    /^rank (\d+) recorded nothing of (\d+) of its groups: there was no room for more$/,
    'rank $1 有 $2 个组没有记录：空间不足',
  ],
  [new RegExp(`^${RANKS} (?:was|were) in (.+)$`), 'rank $1 正在 $2 中'],
  [/^it owes also (.+)$/, '还欠 $1'],
  [/^it waits for (.+)$/, '它在等待 $1'],
  [/^waited for: (.+)$/, '被等待的是：$1'],
  [/^its process (.+)$/, '其进程：$1'],
  [/^see where it is: (.+)$/, '查看它停在哪里：$1'],
  [/^let it go on: (.+)$/, '让它继续：$1'],
  [
    /^look at its last output; was it killed \(dmesg\)\?$/,
    '查看其最后的输出；是否被杀死（dmesg）？',
  ],
  [/^out of memory\? try: (.+)$/, '是否内存不足？试试：$1'],
  [
    /^all ranks must make the same calls in the same order$/,
    '所有 rank 必须以相同顺序做相同的调用',
  ],
  [
    /^all ranks must use one algorithm: compare their UNISONO_ALGORITHM, UNISONO_PROFILE and the algorithms that their calls name$/,
    '所有 rank 必须使用同一算法：比较它们的 UNISONO_ALGORITHM、UNISONO_PROFILE 以及调用中指定的算法',
  ],
  [
    /^in group\(\) too, where several all_reduces became this one, each must have the same count$/,
    '在 group() 中也是如此：多个 all_reduce 合并为这一个，其中每一个的 count 都必须相同',
  ],
  [/^look at the last output of rank (\d+)$/, '查看 rank $1 最后的输出'],
  [/^look at the last output of that process$/, '查看该进程最后的输出'],
  [
    /^with SIGTERM a launcher ends the ranks that are left when another one has failed: look for that one first$/,
    '启动器在某个 rank 失败后用 SIGTERM 结束其余的 rank：请先找到那个失败的 rank',
  ],
  [/^all ranks must make the same calls before they leave$/, '所有 rank 离开前必须做相同的调用'],
  [/^one of the others must send to it, with that tag$/, '须有其他 rank 以该 tag 向它发送'],
  [
    /^let one of them receive first, or use exchange\(\) or asynchronous calls$/,
    '让其中之一先接收，或使用 exchange() 或异步调用',
  ],
  [/^run (unisono trace why) there$/, '在那里运行 $1'],
  [/^does the program call unisono, and did it connect\?$/, '程序是否调用了 unisono 并已连接？'],
  [/^its host may be gone, or it never connected$/, '其主机可能已不在，或它从未连接'],
  [
    /^(unisono run --record-events N) keeps more; a page shows (\d+) in all$/,
    '$1 可保留更多；一页最多显示 $2 个',
  ],
  // What ranks end with: the code, then their own words.
  [
    /^timeout: (\w+ #\d+) on (rank \d+)(?: \(\d+ of its group\))?: no data(?: from (rank \d+)(?: \(\d+ of its group\))?)? for ([\d.]+ s) at step (\d+)(?: \((.+)\))?$/,
    '超时：$2 在 $1 的第 $5 步等了 $4，没有收到 $3 的数据（$6）',
  ],
  [
    /^(rank \d+)(?: \((\d+) of its group\))? has not entered it: its latest is (.+)$/,
    '$1 没有进入它：其最近的是 $3',
  ],
  [
    /^(rank \d+)(?: \((\d+) of its group\))? has not entered it: it has .+$/,
    '$1 没有进入它：它尚未调用任何操作',
  ],
  [
    /^mismatch: operation (#\d+): (rank \d+).*? calls (.+); (rank \d+).*? calls (.+)$/,
    '不一致：操作 $1：$2 调用 $3；$4 调用 $5',
  ],
  [new RegExp(`^peer_lost: ${WHO} is gone: (.+)$`), 'rank $1（pid $2）已不存在：$3'],
  [/^peer_lost: rank (\d+) is gone: (.+)$/, 'rank $1 已不存在：$2'],
  [
    /^look at its last output; the other ranks cannot go on without it$/,
    '查看其最后的输出；没有它其他 rank 无法继续',
  ],
  [
    /^(rank \d+)(?: \(\d+ of its group\))? is stopped: who sent it SIGSTOP\? (kill -CONT \d+) lets it go on$/,
    '$1 被暂停：谁向它发送了 SIGSTOP？用 $2 让它继续',
  ],
  [
    /^(rank \d+)(?: \(\d+ of its group\))? waits too: (rank \d+)(?: \(\d+ of its group\))? holds it up$/,
    '$1 也在等待：它被 $2 拖住',
  ],
  [
    /^(rank \d+)(?: \(\d+ of its group\))?, of another host, has not said that it waits$/,
    '$1 在其他主机上，没有说它在等待',
  ],
  [
    /^all ranks have entered it: look for one that gets no processor, or is in another group$/,
    '所有 rank 都已进入它：查找得不到处理器的 rank，或处于另一组的 rank',
  ],
  [/^aborted: rank (\d+) was interrupted$/, 'rank $1 被中断'],
  [/^stopped after (.+), as --timeout says$/, '$1 后被停止（--timeout）'],
  [
    new RegExp(`^--chaos killed ${RANKS}, then rank (\\d+) (?:was )?(.+)$`),
    '--chaos 杀死了 rank $1，随后 rank $2 $3',
  ],
  [/^rank (\d+) (?:was )?((?:exited|killed) .+)$/, 'rank $1 $2'],
  [/^whoever started it stopped it$/, '被启动者停止'],
  [
    new RegExp(
      `^the beginning is not here: ${RANKS} dropped (\\d+) events, and kept the newest (\\d+)( each)?$`,
    ),
    '缺少开头：rank $1 丢弃了 $2 个事件，各保留最新的 $3 个',
  ],
  [
    new RegExp(
      `^the beginning is not here: (\\d+) events of ${RANKS} are left out, of more than the (\\d+) that a page shows$`,
    ),
    '缺少开头：rank $2 的 $1 个事件被省略，一页最多显示 $3 个',
  ],
  [/^(unisono run --record-events \d+) keeps all of such a run$/, '$1 可完整保留这样的运行'],
  [/^record a shorter run$/, '请记录更短的运行'],
  [
    /^it was meant to be: do the others do what they should when a rank is gone\?$/,
    '这是有意的：其他 rank 在有 rank 消失时是否做了该做的事？',
  ],
  [
    /^if it happens again: (unisono trace why(?: and gdb| there)?), while it still runs$/,
    '若再次发生：趁其仍在运行时用 $1',
  ],
  [
    /^who stopped it\? a debugger, a batch system, a terminal, kill -STOP\?$/,
    '谁暂停了它？调试器、批处理系统、终端，还是 kill -STOP？',
  ],
  [/^record a shorter run, or one with fewer groups$/, '请记录更短的运行，或减少组数'],
];

// Within a sentence.
const PARTS: Pattern[] = [
  [/ of the group of ranks ([\d ]*\d)/g, '（rank $1 的组）'],
  [/ of world\b/g, '（world）'],
  [/\bis stopped\b/g, '被暂停'],
  [/\bis held by a debugger\b/g, '被调试器停住'],
  [/\bwaits for a device\b/g, '在等待设备'],
  [/\bhas ended\b/g, '已结束'],
  [/\bis gone\b/g, '已不存在'],
  [/\bsleeps\b/g, '在休眠'],
  [/\bruns\b/g, '在运行'],
  [/\bended by the launcher after process (\d+) of the job /g, '被启动器结束，此前作业的进程 $1 '],
  [/\bwas (?=killed by)/g, ''],
  [/\bstopped by the launcher\b/g, '被启动器停止'],
  [/; it has called no collective there yet/g, '；它尚未在该组调用任何集合操作'],
  [/; its latest there is /g, '；它在该组最近的是 '],
  [
    /the recv with tag (-?\d+) for the send of rank (\d+)/g,
    'rank $2 的 send（tag $1）所对应的 recv',
  ],
  [
    /the send with tag (-?\d+) for the recv of rank (\d+)/g,
    'rank $2 的 recv（tag $1）所对应的 send',
  ],
  [/a send of any rank with tag (-?\d+)/g, '任一 rank 以 tag $1 的 send'],
  [/killed by ([\w-]+)/g, '被 $1 杀死'],
  [/exited with code (\d+)/g, '以代码 $1 退出'],
];

// The sentence in Chinese; undefined: it is not known.
export function inChinese(said: string): string | undefined {
  for (const [pattern, chinese] of SENTENCES) {
    if (!pattern.test(said)) continue;
    const whole = said
      .replace(pattern, chinese)
      .replace('（）', '')
      .replace(/收到\s+的/, '收到');
    return PARTS.reduce((text, [part, words]) => text.replace(part, words), whole);
  }
  return undefined;
}

// "rank 1 is gone" begins a line of its own; a name such as all_reduce stays as it is.
export function asSentence(words: string): string {
  return /^[a-z]+(?=[ :,])/.test(words) ? words[0]!.toUpperCase() + words.slice(1) : words;
}
