import { isLlmMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import type { CommandWorld, TerminalCommand } from "../ui/ui.ts";

/** `/copy [n]`: the last answer, or the nth last, as the model wrote it. */
export const copyCommand: TerminalCommand = {
  name: "copy",
  about: "copy the last answer",
  hint: "[n]",
  anytime: true,
  async run(rest, world) {
    const text = answerAt(world, nthOf(rest));
    const { copyText } = await import("../app/clipboard.ts");
    const { program, terminal } = await copyText(text, {
      env: world.io.env,
      platform: process.platform,
      control: (sequence) => world.ui.control(sequence),
    });
    const size = `${text.length.toLocaleString("en")} characters`;
    if (program !== undefined) world.ui.say(`Copied ${size}.`);
    else if (terminal) world.ui.say(`Copied ${size}, if the terminal allows it (OSC 52).`);
    else {
      throw new Error(
        `The terminal does not take ${size}, and there is no program for the clipboard. Install xclip, xsel or wl-copy, or write them to a file with /export.`,
      );
    }
  },
};

function nthOf(rest: string): number {
  if (rest === "") return 1;
  const nth = Number(rest);
  if (Number.isSafeInteger(nth) && nth > 0) return nth;
  throw new Error(`/copy takes a number: 1 is the last answer. "${rest}" is none.`);
}

function answerAt({ harness }: CommandWorld, nth: number): string {
  const answers: string[] = [];
  for (const message of harness.agent.state.messages.toReversed()) {
    if (!isLlmMessage(message) || message.role !== "assistant") continue;
    const text = textOf(message);
    if (text.trim() === "") continue;
    answers.push(text);
    if (answers.length === nth) return text;
  }
  if (answers.length === 0) throw new Error("There is no answer to copy yet.");
  const there =
    answers.length === 1 ? "There is one answer" : `There are ${answers.length} answers`;
  throw new Error(`${there}: /copy ${nth} has nothing to copy.`);
}
