// Computes the positions of a machine's devices in its picture: ranks at the bottom in order, and
// each other device at a height that is its number of links to the nearest rank, above the middle
// of the devices that it connects.
import type { Topology } from '../model/topology';

export interface Placed {
  device: number;
  x: number; // 0..1
  level: number; // 0: ranks
}

export function place({ devices, links, ranks }: Topology): Placed[] {
  const peers: number[][] = devices.map(() => []);
  for (const { from, to } of links) peers[from]!.push(to);
  const level = new Int32Array(devices.length).fill(-1);
  for (const device of ranks) level[device] = 0;
  const queue = [...ranks];
  for (let i = 0; i < queue.length; i++) {
    for (const peer of peers[queue[i]!]!) {
      if (level[peer]! >= 0) continue;
      level[peer] = level[queue[i]!]! + 1;
      queue.push(peer);
    }
  }
  const x = new Float64Array(devices.length);
  const levels = Math.max(...level) + 1;
  const placed: Placed[] = [];
  for (let at = 0; at < levels; at++) {
    const own = at === 0 ? ranks : [...level.keys()].filter((device) => level[device] === at);
    const middle = (device: number) => {
      const below = peers[device]!.filter((peer) => level[peer]! === at - 1);
      return below.reduce((sum, peer) => sum + x[peer]!, 0) / Math.max(1, below.length);
    };
    const wanted = new Map(own.map((device) => [device, at === 0 ? 0 : middle(device)]));
    const sorted = at === 0 ? own : [...own].sort((a, b) => wanted.get(a)! - wanted.get(b)!);
    sorted.forEach((device, i) => {
      // A single device stands above the devices that it connects; several devices are spaced
      // evenly.
      const even = (i + 0.5) / sorted.length;
      x[device] = sorted.length === 1 && at > 0 ? wanted.get(device)! : even;
      placed.push({ device, x: x[device]!, level: at });
    });
  }
  return placed;
}
