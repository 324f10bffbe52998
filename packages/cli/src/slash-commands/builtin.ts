import { textOf } from "@gyre/ai";
import { isThinkingLevel, THINKING, THINKING_NAMES } from "@gyre/coding/internal/text/choices";
import { oneLine, shownLine } from "@gyre/coding/internal/text/shown-text";
import { formatCount } from "../text/usage-text.ts";
import type { LineControls, SlashCommand, SlashContext } from "./command-context.ts";
import { exportCommand } from "./export.ts";
import { forkCommand } from "./fork.ts";
import { handoffCommand } from "./handoff.ts";
import { helpCommand } from "./help.ts";
import { mcpCommand } from "./mcp.ts";
import { modelCommand } from "./model.ts";
import { modeCommand, permissionsCommand } from "./permissions.ts";
import { resumeCommand } from "./resume.ts";
import { rewindCommand } from "./rewind.ts";
import { sessionCommand, titleCommand } from "./session-info.ts";
import { toolsCommand } from "./tools.ts";
import { contextCommand, costCommand } from "./usage.ts";

/**
 * The slash commands of the program, in the order in which they are listed. To add one, add an
 * object here: nothing else has to know of it.
 */
export const builtinCommands: readonly SlashCommand[] = [
  modelCommand,
  {
    name: "thinking",
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
  },
  modeCommand,
  permissionsCommand,
  toolsCommand,
  {
    name: "jobs",
    about: "show background jobs, what they wrote, and stop them",
    hint: "name of a job; stop name",
    allowWhileRunning: true,
    run: async (rest, context) => (await import("./work/jobs.ts")).showJobs(rest, context),
    complete: (_rest, { harness }) =>
      harness.toolset.jobs
        .list()
        .map(({ id, command }) => ({ value: id, label: id, detail: oneLine(command) })),
  },
  mcpCommand,
  contextCommand,
  {
    name: "compact",
    about: "make the context smaller now",
    hint: "what to keep above all",
    async run(rest, { harness: { agent }, signal }) {
      const options = { signal, ...(rest !== "" && { keep: rest }) };
      const gain = await agent.compact(options).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        throw new Error("The compaction was stopped, and has changed nothing.", { cause: error });
      });
      return gain
        ? `The context went from about ${formatCount(gain.before)} to ${formatCount(gain.after)} tokens. What was left out stays in the session.`
        : "There is nothing to leave out yet.";
    },
  },
  costCommand,
  {
    name: "retry",
    about: "ask again after a failure or an interruption",
    run(_rest, { harness }) {
      if (!harness.isCutOff) {
        throw new Error("There is nothing to ask again: the last answer is complete.");
      }
      return { retry: true };
    },
  },
  {
    name: "init",
    about: "have it write AGENTS.md from what is in the repository",
    hint: "[what matters]",
    isReplaceable: true,
    run: async (rest) => ({ prompt: (await import("./work/prompts.ts")).initPrompt(rest) }),
  },
  {
    name: "review",
    about: "have it review what is not committed, or a range of commits",
    hint: "[range]",
    isReplaceable: true,
    run: async (rest) => ({ prompt: (await import("./work/prompts.ts")).reviewPrompt(rest) }),
  },
  {
    name: "diff",
    about: "show what is not committed, or what differs from a commit",
    hint: "[commit]",
    isReplaceable: true,
    run: async (rest, { harness, signal }) =>
      (await import("./work/diff.ts")).showDiff(rest, harness, signal),
  },
  {
    name: "status",
    about: "show model, mode, folder, sandbox, tools and session",
    allowWhileRunning: true,
    run: async (_rest, { harness, setup: { settings = {} } }) =>
      (await import("./program/status.ts")).showStatus(harness, settings),
  },
  {
    name: "config",
    aliases: ["settings"],
    about: "show what is set, and where",
    hint: "[all]",
    allowWhileRunning: true,
    run: async (rest, { setup }) => (await import("./program/config.ts")).showSettings(rest, setup),
  },
  {
    name: "kept",
    about: "undo what a command changed that was kept",
    views: ["terminal", "screen reader"],
    run: async (_rest, context) => (await import("./program/kept.ts")).undoKeptEffects(context),
  },
  {
    name: "login",
    about: "store the key of a service",
    hint: "[service]",
    views: ["terminal", "screen reader"],
    run: async (rest, context) =>
      (await import("./program/login.ts")).storeServiceKey(rest, context),
  },
  helpCommand,
  {
    name: "quit",
    aliases: ["exit"],
    about: "leave",
    views: ["terminal", "screen reader"],
    allowWhileRunning: true,
    run: () => ({ quit: true }),
  },
  resumeCommand,
  {
    name: "new",
    aliases: ["clear"],
    about: "begin a new session",
    hint: "[prompt]",
    views: ["terminal", "screen reader"],
    run: (rest) => ({ open: { new: true }, ...(rest !== "" && { prompt: rest }) }),
  },
  {
    name: "tree",
    about: "go to another place in this session",
    views: ["terminal", "screen reader"],
    async run(_rest, { chooseEntry, harness: { session } }) {
      if (!session) throw new Error("Nothing was said in this session yet.");
      const open = await chooseEntry?.(session);
      return open && { open };
    },
  },
  forkCommand,
  handoffCommand,
  sessionCommand,
  titleCommand,
  exportCommand,
  {
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
  },
  rewindCommand,
  // What keys do in the terminal.
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

function controls({ lines }: SlashContext): LineControls {
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
function findAnswer({ harness }: SlashContext, nth: number): string {
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
