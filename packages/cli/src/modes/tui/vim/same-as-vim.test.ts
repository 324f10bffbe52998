import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../../tests/support/cases.ts";
import { createRandom } from "../../../../../tools/src/testing/command-lines.ts";
import { findVim, runVim, type VimState } from "../../../testing/real-vim.ts";
import { createVimCase, ENTER, ESCAPE, REDO, type VimCase } from "../../../testing/vim-cases.ts";
import type { Position } from "../editor/editor-rows.ts";
import { TextBuffer } from "../editor/text-buffer.ts";
import type { TerminalEvent } from "../terminal/key.ts";
import { createKey } from "../terminal/key-sequence.ts";
import { Vim } from "./vim.ts";

/*
 * Keys at random, typed into a prompt and into a real vim. `GYRE_KEYS=100000 GYRE_SEED=1` chooses how many and which.
 */

const CTRL = 5;
/** Enough to see what is wrong. */
const MAX_SHOWN = 10;
/** In one process of vim. */
const BATCH = 5_000;

/**
 * Notes changes after which vim differs: it has a step to undo for a change of nothing, empties what `p` puts, and leaves
 * the cursor elsewhere where a change of several lines is undone.
 */
class NotingBuffer extends TextBuffer {
  hasOwnRules = false;

  override change(from: Position, to: Position, text: string): void {
    const isNothing = this.read(from, to) === text;
    const length = this.lines[to.line]?.length;
    const isOfLines = from.column === 0 && to.line > from.line && to.column === length;
    if (isNothing || (text === "" && isOfLines)) this.hasOwnRules = true;
    super.change(from, to, text);
  }
}

function toEvent(key: string): TerminalEvent {
  if (key === ESCAPE) return createKey("escape");
  if (key === ENTER) return createKey("enter");
  return key === REDO ? createKey("r", CTRL) : { type: "text", text: key };
}

/** What a prompt becomes; undefined where it differs on purpose. */
function runHere({ text, line, column, keys }: VimCase): VimState | undefined {
  const buffer = new NotingBuffer();
  buffer.set(text.join("\n"));
  const vim = new Vim(buffer, () => {});
  vim.take(createKey("escape"));
  const before = [...(text[line] ?? "")].slice(0, column).join("");
  buffer.moveTo({ line, column: before.length });
  for (const key of keys) {
    const event = toEvent(key);
    const answer = vim.take(event);
    if (answer === "pass" && event.type === "text") buffer.insert(event.text, "typed");
    vim.settle();
  }
  const typed = keys.slice("iq vyu".length);
  if (buffer.hasOwnRules && (/[upP]/.test(typed) || typed.includes(REDO))) return undefined;
  const { cursor, lines } = buffer;
  const { isLines, text: copied } = vim.register;
  return {
    lines: [...lines],
    line: cursor.line,
    column: [...(lines[cursor.line] ?? "").slice(0, cursor.column)].length,
    register: copied + (isLines ? "\n" : ""),
  };
}

const found = findVim();
if (!found) console.log("There is no vim 9 with text objects here: nothing is compared with it.");

it.runIf(found)(
  "a prompt becomes what vim makes of it, by random keys",
  { tags: "long", timeout: 3_600_000 },
  () => {
    const seed = pickSeed();
    const count = countCases(1_000, 50_000, "GYRE_KEYS");
    console.log(`${count} sequences of keys with GYRE_SEED=${seed}`);
    const next = createRandom(seed);
    const different: string[] = [];
    let compared = 0;
    for (let done = 0; done < count; done += BATCH) {
      const size = Math.min(BATCH, count - done);
      const cases = Array.from({ length: size }, () => createVimCase(next));
      for (const [index, theirs] of runVim(cases).entries()) {
        const one = cases[index];
        const ours = one && runHere(one);
        if (!ours) continue;
        compared += 1;
        // Vim keeps or empties what was copied by rules of its own where only an empty line is cut.
        const isCut = ours.register.trim() !== "" && theirs.register.trim() !== "";
        const register = isCut ? ours.register : theirs.register;
        if (JSON.stringify(sort({ ...ours, register })) === JSON.stringify(sort(theirs))) continue;
        different.push(
          JSON.stringify({ ...one, theirs: sort(theirs), ours: sort(ours) }, undefined, 1),
        );
      }
    }
    console.log(`${compared} compared`);
    expect(different.slice(0, MAX_SHOWN)).toEqual([]);
    expect(compared).toBeGreaterThan(count / 2);
  },
);

function sort({ lines, line, column, register }: VimState): VimState {
  return { lines, line, column, register };
}
