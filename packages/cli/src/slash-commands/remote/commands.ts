import { isRecord } from "@gyre/ai";
import { type Payload, ProtocolError } from "@gyre/protocol";
import type {
  Choice,
  Command,
  CommandPart,
  CommandResult,
  View,
} from "@gyre/coding/internal/conversation/command";
import { builtinCommands } from "../builtin.ts";
import type { BrowsedSession, ShownContext } from "../command-context.ts";
import { helpCommand } from "../help.ts";
import { modelCommand } from "../model.ts";
import { modeCommand } from "../permissions.ts";
import {
  copyCommand,
  initCommand,
  lineCommands,
  newCommand,
  quitCommand,
  retryCommand,
  reviewCommand,
  thinkingCommand,
  vimCommand,
} from "../shared-commands.ts";
import type { AskedQuestion, GivenAnswer } from "./run-asked.ts";

/** What commands for a session on a server work with. */
export interface RemoteContext extends ShownContext {
  /** Has the host of the session do something. */
  request: (name: string, payload: Payload, signal?: AbortSignal) => Promise<Payload>;
  /** Ends what the session does. */
  abort: () => void;
  /** The sessions of the server that can be chosen. */
  sessions: () => Promise<readonly Choice<string>[]>;
  tree: () => Promise<BrowsedSession>;
}

export type RemoteCommand = Command<RemoteContext>;

const resumeCommand: RemoteCommand = {
  name: "resume",
  aliases: ["sessions"],
  about: "go on with another session of the server",
  hint: "[id]",
  async run(rest, { choose, sessions }) {
    const choices = await sessions();
    const named = rest === "" ? undefined : choices.filter(({ value }) => value.startsWith(rest));
    if (named?.length === 1 && named[0]) return { open: { session: named[0].value } };
    if (named)
      throw new Error(`No session of the server, or more than one, begins with "${rest}".`);
    if (choices.length === 0) throw new Error("The server has no other session.");
    const id = await choose({ title: "Sessions of the server", choices, filter: true });
    return id === undefined ? undefined : { open: { session: id } };
  },
};

const treeCommand: RemoteCommand = {
  name: "tree",
  about: "go to another place in this session",
  async run(_rest, { chooseEntry, tree }) {
    const open = await chooseEntry?.(await tree());
    return open && { open };
  },
};

/** Why commands of the program do not work on a session of a server. */
const REFUSALS: Readonly<Record<string, string>> = {
  config: "The settings are those of the server: gyre config shows them there.",
  login: "Keys are stored where the server runs: gyre login does that there.",
  kept: "A server does not record what was kept of a command: it cannot be undone.",
  rewind:
    "A server does not record files: there is nothing to go back to. /tree goes back to what was said.",
  export: "/export writes a file where the session is: use it there, or gyre sessions show.",
};

/** The commands for a session on a server, of which `served` are run there. */
export function listRemoteCommands(view: View, served: readonly RemoteCommand[]): RemoteCommand[] {
  const here: readonly RemoteCommand[] = [
    modelCommand,
    thinkingCommand,
    modeCommand,
    retryCommand,
    initCommand,
    reviewCommand,
    helpCommand,
    quitCommand,
    resumeCommand,
    newCommand,
    treeCommand,
    copyCommand,
    vimCommand,
    ...lineCommands,
  ];
  const known = new Map([...served, ...here].map((command) => [command.name, command]));
  const isShown = ({ views }: Pick<Command, "views">): boolean =>
    views === undefined || views.includes(view);
  // In the order of the program's own.
  const own = builtinCommands
    .filter(isShown)
    .map((command) => known.get(command.name) ?? refuse(command));
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...served.filter(({ name }) => !names.has(name))];
}

function refuse({
  name,
  aliases,
  about,
  hint,
}: Pick<Command, "name" | "aliases" | "about" | "hint">): RemoteCommand {
  return {
    ...{ name, about },
    ...(aliases && { aliases }),
    ...(hint !== undefined && { hint }),
    allowWhileRunning: true,
    run() {
      throw new Error(
        REFUSALS[name] ?? `The server does not offer /${name} for a session that runs there.`,
      );
    },
  };
}

/** Commands that the host of a session runs. None where it offers none. */
export async function readServedCommands(
  request: RemoteContext["request"],
): Promise<RemoteCommand[]> {
  try {
    const { commands } = await request("commands", {});
    return Array.isArray(commands) ? commands.filter(isRecord).map(createServed) : [];
  } catch (error) {
    if (error instanceof ProtocolError && error.code === "not_implemented") return [];
    throw error;
  }
}

function createServed({
  name: called,
  about,
  aliases,
  hint,
  allowWhileRunning,
}: Payload): RemoteCommand {
  const name = String(called);
  return {
    ...{ name, about: String(about) },
    ...(Array.isArray(aliases) && { aliases: aliases.map(String) }),
    ...(typeof hint === "string" && { hint }),
    ...(allowWhileRunning === true && { allowWhileRunning }),
    run: (rest, context) => runServed(name, rest, context),
  };
}

/** Runs a command at the server. What it asks is asked here, and it is run again with the answers. */
async function runServed(
  command: string,
  rest: string,
  { request, choose, show, signal, abort, harness }: RemoteContext,
): Promise<CommandResult> {
  const answers: GivenAnswer[] = [];
  let shown = 0;
  // What it has the agent do is ended with it, unless that is a run.
  const isIdle = harness.shared?.isRunning !== true;
  signal.addEventListener("abort", () => isIdle && abort(), { once: true });
  for (;;) {
    const answer = await request("command", { command, rest, answers }, signal);
    const parts = readParts(answer["show"]);
    if (parts.length > shown) show(...parts.slice(shown));
    shown = Math.max(shown, parts.length);
    const question = answer["ask"];
    if (!isQuestion(question)) return readResult(answer["result"]);
    const { choices } = question;
    const choice = await choose({
      ...question,
      choices: choices.map((each, value) => ({ ...each, value })),
    });
    const label = choice === undefined ? undefined : choices[choice]?.label;
    answers.push(choice === undefined || label === undefined ? null : { choice, label });
  }
}

function isQuestion(value: unknown): value is AskedQuestion {
  return isRecord(value) && typeof value["title"] === "string" && Array.isArray(value["choices"]);
}

/** The server is trusted to send parts as they are. */
function readParts(value: unknown): CommandPart[] {
  return Array.isArray(value) ? value.filter(isPart) : [];
}

function isPart(value: unknown): value is CommandPart {
  return isRecord(value) && typeof value["type"] === "string";
}

function readResult(value: unknown): CommandResult {
  const { open, edit, prompt, retry, followUp } = isRecord(value) ? value : {};
  const session = isRecord(open) ? open["session"] : undefined;
  const first = isRecord(open) ? open["prompt"] : undefined;
  return {
    ...(typeof session === "string" && { open: { session } }),
    ...(isRecord(open) &&
      open["new"] === true && {
        open: { new: true, ...(typeof first === "string" && { prompt: first }) } as const,
      }),
    ...(typeof edit === "string" && { edit }),
    ...(typeof prompt === "string" && { prompt }),
    ...(retry === true && { retry }),
    ...(followUp === true && { followUp }),
  };
}
