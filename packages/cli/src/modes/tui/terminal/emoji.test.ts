import xterm from "@xterm/headless";
import fc from "fast-check";
import { sanitize } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { screenText } from "../../../testing/screen-text.ts";
import { clusterWidths } from "../../../testing/terminal-widths.ts";
import { measureWidth } from "../../../text/width.ts";
import { ASK_EMOJI, createEmojiReader, type EmojiDrawing } from "./emoji.ts";
import { formatCells, span, splitCells } from "./row.ts";

function openTerminal(isOld: boolean, columns = 80): xterm.Terminal {
  const terminal = new xterm.Terminal({ cols: columns, rows: 4, allowProposedApi: true });
  if (isOld) return terminal;
  terminal.unicode.register(clusterWidths());
  terminal.unicode.activeVersion = "clusters";
  return terminal;
}

const write = (terminal: xterm.Terminal, text: string): Promise<void> =>
  new Promise((settle) => terminal.write(text, settle));

/** What the reader makes of the answers of a terminal in which this is written before. */
async function askTerminal(
  terminal: xterm.Terminal,
  before = "",
): Promise<EmojiDrawing | undefined> {
  const answers: string[] = [];
  terminal.onData((answer) => answers.push(answer.slice(1)));
  await write(terminal, before + ASK_EMOJI);
  const read = createEmojiReader();
  return answers.map((answer) => read(answer)).find((drawing) => drawing !== undefined);
}

describe("a terminal is asked how it draws emoji", () => {
  it.each([
    [false, "whole"],
    [true, "parts"],
  ] as const)("by its columns, where it has no mode (old: %s)", async (isOld, drawing) => {
    expect(await askTerminal(openTerminal(isOld))).toBe(drawing);
  });

  it.each([false, true])(
    "and nothing of it stays, nor goes to another row (old: %s)",
    async (isOld) => {
      const terminal = openTerminal(isOld, 20);
      const drawing = await askTerminal(terminal, "\n\n\nkept text 12345");
      await write(terminal, "!");
      expect(screenText(terminal).at(-1)).toBe("kept text 12345!");
      // There was no room for it, so nothing is known.
      expect(drawing).toBe("parts");
    },
  );

  it.each([
    [["[?2027;1$y"], "whole"],
    [["[?2027;3$y"], "whole"],
    [["[?2027;2$y"], "in the mode"],
    [["[?2027;0$y", "[?5;1R", "[?5;7R"], "whole"],
    [["[?2027;4$y", "[?5;1;1R", "[?5;13;1R"], "parts"],
    [["[?62;22c", "]11;rgb:0/0/0", "[?5;3R", "[?5;9R"], "whole"],
    [["[?5;3R"], undefined],
    [["[?62c", "[?1;2;3;4R", "[5;3R"], undefined],
  ] as const)("%j is %s", (answers, expected) => {
    const read = createEmojiReader();
    expect(answers.map((answer) => read(answer)).find(Boolean)).toBe(expected);
  });
});

describe("a row with emoji", () => {
  const part = fc.constantFrom(
    ...[
      "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}",
      "\u{1F469}\u{1F3FD}\u200D\u{1F680}",
      "\u{1F1E9}\u{1F1EA}",
    ],
    ...[
      "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
      "\u{1F44D}\u{1F3FD}",
      "\u2764\uFE0F",
    ],
    ...[
      "1\uFE0F\u20E3",
      "\u{1F3F3}\uFE0F\u200D\u{1F308}",
      "\u200D",
      "\u{1F680}",
      "日",
      "é",
      "a",
      " ",
      "\u{1F1E9}",
    ],
  );
  it.each([true, false])("has what follows it in its column (whole: %s)", async (wholeEmoji) => {
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (parts) => {
        const shown = sanitize(parts.join(""), { wholeEmoji });
        const terminal = openTerminal(!wholeEmoji);
        await write(terminal, formatCells(splitCells([span(`${shown}|`)])));
        const width = measureWidth(`${shown}|`);
        expect(terminal.buffer.active.cursorX).toBe(width);
        const line = terminal.buffer.active.getLine(0);
        expect(line?.getCell(width - 1)?.getChars()).toBe("|");
        // Where it draws clusters, all of it is there.
        if (wholeEmoji) expect(line?.translateToString(true)).toBe(`${shown}|`);
      }),
      { numRuns: 300 },
    );
  });
});
