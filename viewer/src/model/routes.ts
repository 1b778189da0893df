// Computes routes between ranks by the rules of src/topology/routes.h: the fewest links; among
// those the largest bandwidth; through no device that has a rank; if still equal, by the port that
// leads down to the destination. A test compares the routes with `unisono topo --route`.
import type { Topology } from './topology';

export class Router {
  private readonly out: number[][]; // by device: the outgoing links
  private readonly into: number[][];
  private readonly port: number[] = []; // by link: its index among those of its device
  private readonly hasRank: boolean[];
  private readonly away = new Map<number, Int32Array>(); // distances from devices of ranks
  private readonly back = new Map<number, Int32Array>(); // and distances to these devices

  constructor(private readonly topology: Topology) {
    const { devices, links, ranks } = topology;
    this.out = devices.map(() => []);
    this.into = devices.map(() => []);
    links.forEach(({ from, to }, link) => {
      this.port[link] = this.out[from]!.push(link) - 1;
      this.into[to]!.push(link);
    });
    this.hasRank = devices.map(() => false);
    for (const device of ranks) this.hasRank[device] = true;
  }

  // Returns the links from one rank to another, in order; undefined: there is no route.
  route(fromRank: number, toRank: number): number[] | undefined {
    const { links, ranks } = this.topology;
    const source = ranks[fromRank]!;
    const target = ranks[toRank]!;
    if (source === target) return [];
    const away = this.distances(source, false);
    const back = this.distances(target, true);
    const length = away[target]!;
    if (length < 0) return undefined;
    const isBetween = (device: number) =>
      (!this.hasRank[device] || device === source || device === target) &&
      away[device]! >= 0 &&
      back[device]! >= 0 &&
      away[device]! + back[device]! === length;
    const width = this.widths(source, away, isBetween);
    const route: number[] = [];
    let port = 0;
    for (let device = target; device !== source;) {
      const choices = this.into[device]!.filter((link) => {
        const { from, bytesPerUs } = links[link]!;
        return (
          isBetween(from) &&
          away[from] === away[device]! - 1 &&
          Math.min(width.get(from)!, bytesPerUs) >= width.get(target)!
        );
      });
      const chosen = choices[port % choices.length]!;
      port = this.port[chosen]!;
      route.push(chosen);
      device = links[chosen]!.from;
    }
    return route.reverse();
  }

  // Returns the number of links from `start` to each device, or from each device to it; -1: there
  // is no route. A route may end at a device that has a rank, but does not continue from it.
  private distances(start: number, backward: boolean): Int32Array {
    const { devices, links } = this.topology;
    const known = backward ? this.back : this.away;
    const before = known.get(start);
    if (before) return before;
    const far = new Int32Array(devices.length).fill(-1);
    known.set(start, far);
    far[start] = 0;
    const queue = [start];
    for (let i = 0; i < queue.length; i++) {
      const device = queue[i]!;
      for (const link of (backward ? this.into : this.out)[device]!) {
        const next = backward ? links[link]!.from : links[link]!.to;
        if (far[next]! >= 0) continue;
        far[next] = far[device]! + 1;
        if (!this.hasRank[next]) queue.push(next);
      }
    }
    return far;
  }

  // Returns, for each device on a shortest route, the bandwidth of the narrowest link of the widest
  // such route.
  private widths(
    source: number,
    away: Int32Array,
    isBetween: (device: number) => boolean,
  ): Map<number, number> {
    const { links } = this.topology;
    const width = new Map([[source, Infinity]]);
    let level = [source];
    while (level.length > 0) {
      const next = new Set<number>();
      for (const device of level) {
        for (const link of this.out[device]!) {
          const { to, bytesPerUs } = links[link]!;
          if (!isBetween(to) || away[to] !== away[device]! + 1) continue;
          width.set(to, Math.max(width.get(to) ?? 0, Math.min(width.get(device)!, bytesPerUs)));
          next.add(to);
        }
      }
      level = [...next];
    }
    return width;
  }
}
