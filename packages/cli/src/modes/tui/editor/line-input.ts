import { measureWidth, splitClusters, takeClusters } from "../../../text/width.ts";
import type { TerminalEvent } from "../terminal/key.ts";

/** Input beyond this length is ignored. */
const MAX_LINE_CHARS = 10_000;

/** One line of input with a cursor. */
export class LineInput {
  #before: string;
  #after = "";

  constructor(initial = "") {
    this.#before = initial;
  }

  get text(): string {
    return this.#before + this.#after;
  }

  /** The text before the cursor. */
  get before(): string {
    return this.#before;
  }

  clear(): void {
    this.#before = "";
    this.#after = "";
  }

  /** Handles an event. Returns whether it had an effect. */
  take(event: TerminalEvent): boolean {
    switch (event.type) {
      case "text":
        return this.#insert(event.text);
      case "paste":
        return this.#insert(event.text.trim().replace(/\s*\n\s*/g, " "));
      case "key":
        return this.#key(event.name, event.ctrl, event.alt);
      default:
        return false;
    }
  }

  #insert(text: string): boolean {
    const room = MAX_LINE_CHARS - this.#before.length - this.#after.length;
    if (text === "" || text.length > room) return false;
    this.#before += text;
    return true;
  }

  #key(name: string, ctrl: boolean, alt: boolean): boolean {
    switch (ctrl ? `ctrl+${name}` : name) {
      case "left":
      case "ctrl+b":
        this.#move(this.#before.length - findLastCluster(this.#before).length);
        return true;
      case "right":
      case "ctrl+f":
        this.#move(this.#before.length + (splitClusters(this.#after)[0]?.text.length ?? 0));
        return true;
      case "home":
      case "ctrl+a":
        this.#move(0);
        return true;
      case "end":
      case "ctrl+e":
        this.#move(this.text.length);
        return true;
      case "backspace":
        this.#before = alt ? removeWord(this.#before) : removeLast(this.#before);
        return true;
      case "delete":
        this.#after = this.#after.slice(splitClusters(this.#after)[0]?.text.length ?? 0);
        return true;
      case "ctrl+u":
        this.#before = "";
        return true;
      case "ctrl+k":
        this.#after = "";
        return true;
      case "ctrl+w":
        this.#before = removeWord(this.#before);
        return true;
      default:
        return false;
    }
  }

  #move(to: number): void {
    const { text } = this;
    this.#before = text.slice(0, to);
    this.#after = text.slice(to);
  }
}

/** The part of a line around its cursor that fits, and the column of the cursor in it. */
export function fitAroundCursor(
  before: string,
  text: string,
  columns: number,
): { text: string; cursor: number } {
  // At the end of the line the cursor takes a column of its own.
  const room = Math.max(1, columns - 1);
  let shown = splitClusters(before);
  let cursor = measureWidth(before);
  let from = 0;
  while (cursor > room && from < shown.length) cursor -= shown[from++]?.width ?? 0;
  shown = [...shown.slice(from), ...splitClusters(text.slice(before.length))];
  return { text: takeClusters(shown, room).join(""), cursor };
}

function findLastCluster(text: string): string {
  return splitClusters(text).at(-1)?.text ?? "";
}

export function removeLast(text: string): string {
  return text.slice(0, text.length - findLastCluster(text).length);
}

function removeWord(text: string): string {
  return text.replace(/\S*\s*$/, "");
}
