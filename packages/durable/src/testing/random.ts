/** A number below `below`, or what a seed decides. The same seed gives the same numbers. */
export class Random {
  #state: number;

  constructor(seed: string | number) {
    let hash = 2_166_136_261;
    for (const unit of String(seed))
      hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 16_777_619);
    this.#state = hash >>> 0;
  }

  /** At least 0, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number, at least 0, below `below`. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }
}
