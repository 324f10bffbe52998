/** Numbers that a seed decides, by the small fast counter generator (sfc32). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** One seed has many streams, so that a new question in one place changes no other. */
  constructor(seed: number, stream: string) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < stream.length; i++) {
      hash = Math.imul(hash ^ stream.charCodeAt(i), 0x01000193);
    }
    this.#a = seed | 0;
    this.#b = hash | 0;
    this.#c = Math.imul(seed ^ hash, 0x9e3779b1) | 0;
    // The state is thin at first: stir it.
    for (let i = 0; i < 12; i++) this.#word();
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    return this.#word() / 0x1_0000_0000;
  }

  /** A whole number from 0 up to, not including, `below`. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    const index = this.below(list.length);
    if (index >= list.length) throw new RangeError("Nothing to pick from.");
    return list[index] as T;
  }

  /** One of the keys, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries<number>(weights) as [K, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    const [last] = entries.at(-1) ?? [];
    if (last === undefined) throw new RangeError("Nothing to choose from.");
    return last;
  }

  #word(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }
}
