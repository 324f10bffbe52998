import { textOf } from "@gyre/ai";
import { isThinkingLevel, THINKING, THINKING_NAMES } from "@gyre/coding/internal/text/choices";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { formatCount } from "../text/usage-text.ts";
import type { LineControls, ShownCommand, ShownContext } from "./command-context.ts";

// Commands that need no more of the agent than a view does: they work wherever it runs.

export const thinkingCommand: ShownCommand = {
  name: "thinking",
  aliases: ["effort"],
  about: "show how much it thinks, or change that",
  hint: THINKING_NAMES.join(", "),
  allowWhileRunning: true,
  async run(rest, { choose, harness }) {
    const current = harness.agent.state.thinkingLevel;
    const choices = thinkingChoices();
    const level =
      rest === ""
        ? await choose({
            title: "How much should it think?",
            choices: choices.map((choice) =>
              choice.value === current ? { ...choice, detail: "now" } : choice,
            ),
            start: choices.findIndex(({ value }) => value === current),
          })
        : rest;
    if (level === undefined) return undefined;
    if (!isThinkingLevel(level)) {
      const levels = THINKING_NAMES.join(", ");
      throw new Error(`There is no level "${level}". The levels are ${levels}.`);
    }
    await harness.setThinking(level);
    return `Thinking is ${level} now.`;
  },
  complete: () => thinkingChoices(),
};

export const retryCommand: ShownCommand = {
  name: "retry",
  about: "ask again after a failure or an interruption",
  run(_rest, { harness }) {
    if (!harness.isCutOff) {
      throw new Error("There is nothing to ask again: the last answer is complete.");
    }
    return { retry: true };
  },
};

export const initCommand: ShownCommand = {
  name: "init",
  about: "have it write AGENTS.md from what is in the repository",
  hint: "[what matters]",
  isReplaceable: true,
  run: async (rest) => ({ prompt: (await import("./work/prompts.ts")).initPrompt(rest) }),
};

export const reviewCommand: ShownCommand = {
  name: "review",
  about: "have it review what is not committed, or a range of commits",
  hint: "[range]",
  isReplaceable: true,
  run: async (rest) => ({ prompt: (await import("./work/prompts.ts")).reviewPrompt(rest) }),
};

export const quitCommand: ShownCommand = {
  name: "quit",
  aliases: ["exit"],
  about: "leave",
  views: ["terminal", "screen reader"],
  allowWhileRunning: true,
  run: () => ({ quit: true }),
};

export const newCommand: ShownCommand = {
  name: "new",
  aliases: ["clear", "reset"],
  about: "begin a new session",
  hint: "[prompt]",
  views: ["terminal", "screen reader"],
  run: (rest) => ({ open: { new: true }, ...(rest !== "" && { prompt: rest }) }),
};

export const copyCommand: ShownCommand = {
  name: "copy",
  about: "copy the last answer",
  hint: "[n]",
  views: ["terminal", "screen reader"],
  allowWhileRunning: true,
  async run(rest, context) {
    const answer = findAnswer(context, parseNth(rest));
    const size = `${formatCount(answer.length)} characters`;
    const { program, terminal = false } = (await context.copy?.(answer)) ?? {};
    if (program !== undefined) return `Copied ${size}.`;
    if (terminal) return `Copied ${size}, if the terminal allows it (OSC 52).`;
    throw new Error(
      `The terminal does not take ${size}, and there is no program for the clipboard. Install xclip, xsel or wl-copy, or write them to a file with /export.`,
    );
  },
};

export const vimCommand: ShownCommand = {
  name: "vim",
  about: "have the prompt take keys as vim does, or as before",
  views: ["terminal"],
  allowWhileRunning: true,
  run: async (_rest, { toggleVim }) =>
    (await toggleVim?.())
      ? 'Keys work as in vim now: Esc leaves the insert mode. "editorMode": "vim" in your settings has it so each time.'
      : "Keys work as before.",
};

export const themeCommand: ShownCommand = {
  name: "theme",
  about: "use the colors of another theme",
  hint: "auto, light, dark, or the name of a theme",
  views: ["terminal"],
  allowWhileRunning: true,
  async run(rest, { choose, setTheme }) {
    const names = ["auto", "light", "dark"];
    const title = "Which theme?";
    const choices = names.map((value) => ({ value, label: value }));
    const name = rest === "" ? await choose({ title, choices }) : rest;
    if (name === undefined) return undefined;
    await setTheme?.(name);
    return `The theme is ${name} now. \`/config theme ${name}\` has it so each time.`;
  },
};

/** What keys do in the terminal. */
export const lineCommands: readonly ShownCommand[] = [
  {
    name: "then",
    about: "send it something for when it is done",
    hint: "TEXT",
    views: ["screen reader"],
    allowWhileRunning: true,
    run(rest) {
      if (rest === "") throw new Error("/then needs a text: /then run the tests again");
      return { prompt: rest, followUp: true };
    },
  },
  {
    name: "stop",
    about: "interrupt it",
    views: ["screen reader"],
    allowWhileRunning: true,
    run: (_rest, context) => (controls(context).interrupt() ? undefined : "Nothing runs."),
  },
  {
    name: "queue",
    about: "list the messages that wait for it",
    views: ["screen reader"],
    allowWhileRunning: true,
    run(_rest, context) {
      const waiting = controls(context).waiting();
      if (waiting.length === 0) return "No message is waiting.";
      return waiting
        .map(({ queue, text }) => `${queue === "steering" ? "Next" : "Then"}: ${shownLine(text)}`)
        .join("\n");
    },
  },
  {
    name: "back",
    about: "take back the messages that wait for it",
    views: ["screen reader"],
    allowWhileRunning: true,
    run: (_rest, context) => (controls(context).takeBack() ? undefined : "No message is waiting."),
  },
  {
    name: "send",
    about: "send the text that was taken back or put there",
    views: ["screen reader"],
    allowWhileRunning: true,
    run(_rest, context) {
      const prompt = controls(context).takeDraft();
      if (prompt === undefined)
        throw new Error("There is no text to send: nothing was taken back.");
      return { prompt };
    },
  },
];

function thinkingChoices() {
  return Object.entries(THINKING).map(([value, name]) => ({ value, label: value, search: name }));
}

function controls({ lines }: ShownContext): LineControls {
  if (!lines) throw new Error("This command is for the screen-reader mode.");
  return lines;
}

function parseNth(rest: string): number {
  if (rest === "") return 1;
  const nth = Number(rest);
  if (Number.isSafeInteger(nth) && nth > 0) return nth;
  throw new Error(`/copy takes a number, 1 for the last answer, not "${rest}".`);
}

/** The nth last answer, as the model wrote it. */
function findAnswer({ harness }: ShownContext, nth: number): string {
  const answers = harness.agent.state.messages
    .map((message) => (message.role === "assistant" ? textOf(message) : ""))
    .filter((text) => text.trim() !== "");
  const answer = answers.at(-nth);
  if (answer !== undefined) return answer;
  if (answers.length === 0) throw new Error("There is no answer to copy yet.");
  const there =
    answers.length === 1 ? "There is one answer" : `There are ${answers.length} answers`;
  throw new Error(`${there}: /copy ${nth} has nothing to copy.`);
}
