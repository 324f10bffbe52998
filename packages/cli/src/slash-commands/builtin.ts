import { text } from "@gyre/coding/internal/conversation/command";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { formatCount } from "../text/usage-text.ts";
import type { SlashCommand } from "./command-context.ts";
import { exportCommand } from "./export.ts";
import { handoffCommand } from "./handoff.ts";
import { helpCommand } from "./help.ts";
import { mcpCommand } from "./mcp.ts";
import { modelCommand } from "./model.ts";
import { modeCommand, permissionsCommand } from "./permissions.ts";
import { resumeCommand } from "./resume.ts";
import { sessionCommand, titleCommand } from "./session-info.ts";
import {
  copyCommand,
  initCommand,
  lineCommands,
  newCommand,
  quitCommand,
  retryCommand,
  reviewCommand,
  themeCommand,
  thinkingCommand,
  vimCommand,
} from "./shared-commands.ts";
import { toolsCommand } from "./tools.ts";
import { contextCommand, costCommand } from "./usage.ts";

/** Those that are of no use to an editor, which shows these things itself. */
const TERMINALS = ["terminal", "screen reader"] as const;

/**
 * The slash commands of the program, in the order in which they are listed. To add one, add an
 * object here: nothing else has to know of it.
 */
export const builtinCommands: readonly SlashCommand[] = [
  modelCommand,
  thinkingCommand,
  modeCommand,
  {
    name: "plan",
    about: "have it plan first: mode plan",
    hint: "[prompt]",
    views: TERMINALS,
    async run(rest, { harness }) {
      await harness.setMode("plan");
      return { show: [text("The mode is plan now.")], ...(rest !== "" && { prompt: rest }) };
    },
  },
  permissionsCommand,
  toolsCommand,
  {
    name: "add-dir",
    about: "add a folder to the workspace, or list those that were added",
    hint: "folder",
    run: async (rest, { harness }) => (await import("./program/add-dir.ts")).addDir(rest, harness),
  },
  {
    name: "jobs",
    aliases: ["tasks", "bashes"],
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
  retryCommand,
  {
    name: "btw",
    about: "ask something beside the conversation, also while it works",
    hint: "QUESTION",
    allowWhileRunning: true,
    async run(rest, { harness, signal }) {
      if (rest === "") throw new Error("/btw needs a question: /btw which port does it use?");
      return shownText(await harness.askAside(rest, signal));
    },
  },
  initCommand,
  reviewCommand,
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
    about: "show what is set, and where, or set something for the next start",
    hint: "all; KEY VALUE",
    allowWhileRunning: true,
    async run(rest, context) {
      const [, key, value] = /^(\S+)\s+([^]+)$/.exec(rest) ?? [];
      if (key === undefined || value === undefined) {
        return (await import("./program/config.ts")).showSettings(rest, context.setup);
      }
      return (await import("./familiar/set-setting.ts")).setSetting(key, value, context);
    },
  },
  {
    name: "memory",
    about: "show the files that say how to work here",
    views: TERMINALS,
    run: async (_rest, context) => (await import("./familiar/lists.ts")).showMemory(context),
  },
  {
    name: "remember",
    about: "add a line to such a file; # before a text does the same",
    hint: "TEXT",
    views: TERMINALS,
    run: async (rest, context) => (await import("./familiar/remember.ts")).remember(rest, context),
  },
  {
    name: "todos",
    about: "show the steps that the model has written down",
    views: TERMINALS,
    allowWhileRunning: true,
    run: async (_rest, context) => (await import("./familiar/lists.ts")).showTodos(context),
  },
  {
    name: "agents",
    about: "show the kinds of sub-agents",
    views: TERMINALS,
    allowWhileRunning: true,
    run: async (_rest, context) => (await import("./familiar/lists.ts")).showAgents(context),
  },
  {
    name: "skills",
    about: "show the skills",
    views: TERMINALS,
    allowWhileRunning: true,
    run: async (_rest, context) => (await import("./familiar/lists.ts")).showSkills(context),
  },
  {
    name: "hooks",
    about: "show what runs at which event",
    views: TERMINALS,
    allowWhileRunning: true,
    run: async (_rest, context) => (await import("./familiar/lists.ts")).showHooks(context),
  },
  {
    name: "doctor",
    about: "report what works here and what does not",
    views: TERMINALS,
    run: async (_rest, context) => (await import("./familiar/doctor.ts")).showDoctor(context),
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
  vimCommand,
  themeCommand,
  helpCommand,
  quitCommand,
  resumeCommand,
  newCommand,
  {
    name: "tree",
    about: "go to another place in this session",
    views: ["terminal", "screen reader"],
    run: async (_rest, context) => (await import("./places/tree.ts")).goInTree(context),
  },
  {
    name: "race",
    about: "have rivals go on in copies of the folder, compare them, and adopt one",
    hint: "NUMBER MODELS -- PROMPT",
    views: ["terminal", "screen reader"],
    endsItself: true,
    run: async (rest, context) => (await import("./race/race.ts")).race(rest, context),
  },
  {
    name: "fork",
    about: "go on in a copy of this session",
    views: ["terminal", "screen reader"],
    run: async (_rest, context) => (await import("./places/fork.ts")).goOnInCopy(context),
  },
  handoffCommand,
  sessionCommand,
  titleCommand,
  exportCommand,
  copyCommand,
  {
    name: "rewind",
    aliases: ["undo", "checkpoint"],
    about: "take the conversation, files or both back to before a prompt",
    views: ["terminal", "screen reader"],
    run: async (_rest, context) => (await import("./places/rewind.ts")).rewind(context),
  },
  ...lineCommands,
];
