import type { Position } from "../editor/editor-rows.ts";
import {
  type CharacterClass,
  classAt,
  isEmptyLine,
  type Lines,
  stepBack,
  stepForward,
} from "./characters.ts";

/** Where a motion over words leads; `isWhole` is false where the text ended before. */
export interface WordPlace {
  readonly at: Position;
  readonly isWhole: boolean;
}

/** Moves over words. `isBig`: words are what is between blanks. */
export class WordWalk {
  readonly #lines: Lines;
  readonly #isBig: boolean;
  #at: Position;

  constructor(lines: Lines, from: Position, isBig: boolean) {
    this.#lines = lines;
    this.#isBig = isBig;
    this.#at = from;
  }

  /** To the beginning of a word further on. `staysInLine`: the last word moved over ends with its line. */
  forward(count: number, staysInLine: boolean): WordPlace {
    for (let left = count; left > 0; left--) {
      const kind = this.#class();
      const isLastLine = this.#at.line === this.#lines.length - 1;
      const stops = staysInLine && left === 1;
      const step = this.#step();
      if (step === undefined || (step !== "character" && isLastLine)) return this.#end(false);
      if (step !== "character" && stops) return this.#end(true);
      while (kind !== "blank" && this.#class() === kind) {
        const next = this.#step();
        if (next === undefined || (next !== "character" && stops)) return this.#end(true);
      }
      while (this.#class() === "blank" && !this.#isOnEmptyLine()) {
        const next = this.#step();
        if (next === undefined || (next !== "character" && stops)) return this.#end(true);
      }
    }
    return this.#end(true);
  }

  /**
   * To the end of a word further on. `staysInWord`: the word that the walk begins in counts, even at its last character.
   * `stopsAtEmpty`: an empty line is a word.
   */
  toEnd(count: number, { staysInWord = false, stopsAtEmpty = false } = {}): WordPlace {
    for (let left = count; left > 0; left--) {
      const stays = staysInWord && left === count;
      const kind = this.#class();
      if (this.#step() === undefined) return this.#end(false);
      if (kind !== "blank" && this.#class() === kind) {
        if (!this.#skip(kind, 1)) return this.#end(false);
      } else if (!stays || kind === "blank") {
        let isFound = false;
        while (this.#class() === "blank" && !isFound) {
          isFound = stopsAtEmpty && this.#isOnEmptyLine();
          if (!isFound && this.#step() === undefined) return this.#end(false);
        }
        if (isFound) continue;
        if (!this.#skip(this.#class(), 1)) return this.#end(false);
      }
      this.#step(-1);
    }
    return this.#end(true);
  }

  /** To the beginning of a word further back. */
  back(count: number): WordPlace {
    for (let left = count; left > 0; left--) {
      if (this.#step(-1) === undefined) return this.#end(false);
      if (!this.#skipBlanks()) return this.#end(true);
      if (this.#isOnEmptyLine()) continue;
      if (!this.#skip(this.#class(), -1)) return this.#end(true);
      this.#step();
    }
    return this.#end(true);
  }

  /** To the end of a word further back. */
  backToEnd(count: number): WordPlace {
    for (let left = count; left > 0; left--) {
      const kind = this.#class();
      if (this.#step(-1) === undefined) return this.#end(false);
      if (kind !== "blank" && this.#class() === kind && !this.#skip(kind, -1))
        return this.#end(true);
      if (!this.#skipBlanks()) return this.#end(true);
    }
    return this.#end(true);
  }

  /** Back over blanks, up to an empty line. False: the text begins with them. */
  #skipBlanks(): boolean {
    while (this.#class() === "blank" && !this.#isOnEmptyLine()) {
      if (this.#step(-1) === undefined) return false;
    }
    return true;
  }

  /** To the first character of another kind. False: there is none. */
  #skip(kind: CharacterClass, direction: 1 | -1): boolean {
    while (this.#class() === kind) if (this.#step(direction) === undefined) return false;
    return true;
  }

  #step(direction: 1 | -1 = 1): "character" | "end" | "line" | undefined {
    const step = (direction > 0 ? stepForward : stepBack)(this.#lines, this.#at);
    if (step) this.#at = step.at;
    return step?.to;
  }

  #class(): CharacterClass {
    return classAt(this.#lines, this.#at, this.#isBig);
  }

  #isOnEmptyLine(): boolean {
    return isEmptyLine(this.#lines, this.#at.line);
  }

  #end(isWhole: boolean): WordPlace {
    return { at: this.#at, isWhole };
  }
}
