import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { fuzzyRank } from "./fuzzy.ts";
import {
  type Choice,
  type Command,
  type CommandContext,
  findCommand,
} from "@gyre/coding/internal/conversation/command";

/** The most choices that are listed. */
const MAX_CHOICES = 100;
/** How far before the cursor a path may begin. */
const MAX_PATH_CHARS = 4_096;

/** A text that the user can choose to insert at the cursor. */
export interface Completion {
  label: string;
  detail?: string;
  /** Replaces the part that was asked about. */
  text: string;
  /** What Enter does then: `submit` sends the whole text, `continue` asks for more. Default: the list closes. */
  next?: "submit" | "continue";
}

/** A part of the text that may have completions. */
export interface CompletionRequest {
  /** The part that a completion replaces. */
  start: number;
  end: number;
  /** Only Tab opens the list. */
  onTab?: boolean;
  /** Nothing is marked at first: the text may already be complete. */
  isOptional?: boolean;
  /** Throws an error for the user. A late answer is dropped. */
  load(signal: AbortSignal): readonly Completion[] | Promise<readonly Completion[]>;
}

export interface Completions {
  /** Undefined where nothing can be completed at the cursor. */
  for(text: string, cursor: number): CompletionRequest | undefined;
}

export interface CompletionSources {
  commands: () => readonly Command[];
  /** Throws where the agent is not open yet. */
  context: () => CommandContext;
  files: { find(query: string, signal: AbortSignal): Promise<readonly string[]> };
}

type Complete = (
  sources: CompletionSources,
  text: string,
  cursor: number,
) => CompletionRequest | undefined;

/** A path as it is typed to mention a file. */
export function formatMention(path: string): string {
  return /\s/.test(path) ? `@"${path}"` : `@${path}`;
}

const completeCommand: Complete = ({ commands }, text, cursor) => {
  const typed = /^\/(\S*)/.exec(text)?.[1];
  if (typed === undefined || cursor === 0 || cursor > typed.length + 1) return undefined;
  // A slash within it: a path, not a command.
  const query = typed.slice(0, cursor - 1);
  if (typed.includes("/")) return undefined;
  const isAlone = text.trimEnd().length === typed.length + 1;
  return {
    start: 0,
    end: typed.length + 1,
    load: () =>
      rankByName(query, withAliases(query, commands()), ({ name }) => name).map((command) =>
        commandCompletion(command, isAlone),
      ),
  };
};

/** The commands, and each other name that begins with what is typed. */
function withAliases(query: string, commands: readonly Command[]): Command[] {
  const begun = query.toLowerCase();
  const names = new Set(commands.map(({ name }) => name));
  const others = commands.flatMap((command) =>
    (command.aliases ?? [])
      .filter((alias) => begun !== "" && alias.startsWith(begun) && !names.has(alias))
      .map((name) => ({ ...command, name })),
  );
  return [...commands, ...others];
}

function commandCompletion({ name, about, hint }: Command, isAlone: boolean): Completion {
  const needsMore = hint?.startsWith("<") ?? false;
  return {
    label: shownText(`/${name}${hint === undefined ? "" : ` ${hint}`}`),
    detail: oneLine(about),
    text: isAlone ? `/${name} ` : `/${name}`,
    next: isAlone && !needsMore ? "submit" : "continue",
  };
}

/** What follows the name of a command. */
const completeRest: Complete = ({ commands, context }, text, cursor) => {
  const [lead, name] = /^\/(\S+)\s+/.exec(text) ?? [];
  if (lead === undefined || cursor < lead.length || text.includes("\n")) return undefined;
  const command = findCommand(name ?? "", commands());
  if (!command?.complete) return undefined;
  const rest = text.slice(lead.length);
  return {
    start: lead.length,
    end: text.length,
    isOptional: rest === "",
    load() {
      const choices = command.complete?.(rest, context()) ?? [];
      return choices instanceof Promise
        ? choices.then((each) => restCompletions(rest, each))
        : restCompletions(rest, choices);
    },
  };
};

function restCompletions(rest: string, choices: readonly Choice<string>[]): Completion[] {
  const found = rankByName(rest, choices, ({ label, search = "" }) => `${label} ${search}`.trim());
  // The text is already complete.
  if (found.length === 1 && found[0]?.value === rest) return [];
  return found.map(({ label, detail, value }) => ({
    label: oneLine(label),
    ...(detail !== undefined && { detail: oneLine(detail) }),
    text: value,
  }));
}

/** `@path`, or `@"a path"`, behind a space or at the beginning of a line. */
const completeMention: Complete = ({ files }, text, cursor) => {
  const lineStart = text.lastIndexOf("\n", cursor - 1) + 1;
  const before = text.slice(Math.max(lineStart, cursor - MAX_PATH_CHARS), cursor);
  const [typed, , quoted, plain] = /(?<=^|[\s(])@("([^"]*)|([^\s"]*))$/.exec(before) ?? [];
  if (typed === undefined) return undefined;
  const isQuoted = quoted !== undefined;
  const [rest = ""] = (isQuoted ? /^[^"\n]*"?/ : /^[^\s"]*/).exec(text.slice(cursor)) ?? [];
  // An open quotation would replace the rest of the line.
  const end = isQuoted && !rest.endsWith('"') ? cursor : cursor + rest.length;
  return {
    start: cursor - typed.length,
    end,
    load: async (signal) => {
      const paths = await files.find(quoted ?? plain ?? "", signal);
      return paths.filter(isShowable).map((path) => mentionCompletion(path, text[end]));
    },
  };
};

function mentionCompletion(path: string, next: string | undefined): Completion {
  const mention = formatMention(path);
  if (path.endsWith("/")) {
    // Open at its end: the user goes on with a name in the folder.
    return { label: path, text: mention.replace(/"$/, ""), next: "continue" };
  }
  return { label: path, text: next === " " ? mention : `${mention} ` };
}

/** A path in a line for the shell. */
const completeShell: Complete = ({ files }, text, cursor) => {
  if (!text.startsWith("!")) return undefined;
  const typed =
    /[^\s!'"]*$/.exec(text.slice(Math.max(0, cursor - MAX_PATH_CHARS), cursor))?.[0] ?? "";
  return {
    start: cursor - typed.length,
    end: cursor,
    onTab: true,
    load: async (signal) => {
      const paths = await files.find(typed.replaceAll("\\", "").replace(/^\.\//, ""), signal);
      return paths.filter(isShowable).map((path) => ({
        label: path,
        text: path.endsWith("/") ? escapeForShell(path) : `${escapeForShell(path)} `,
        ...(path.endsWith("/") && { next: "continue" as const }),
      }));
    },
  };
};

/** For a POSIX shell. */
function escapeForShell(path: string): string {
  return path.replaceAll(/[^\w@%+=:,./\p{L}\p{N}-]/gu, "\\$&");
}

/** Names may contain anything. One that cannot be shown as it is, is not offered. */
function isShowable(path: string): boolean {
  return shownText(path) === path && !path.includes("\n");
}

/** The things whose names match, the best first. */
function rankByName<T>(query: string, things: readonly T[], getName: (thing: T) => string): T[] {
  const byName = new Map<string, T[]>();
  for (const thing of things) {
    const name = getName(thing);
    byName.set(name, [...(byName.get(name) ?? []), thing]);
  }
  return fuzzyRank(query, [...byName.keys()], MAX_CHOICES).flatMap(
    (name) => byName.get(name) ?? [],
  );
}

/** The completions of the editor: commands, their arguments, and files. */
export function createCompletions(sources: CompletionSources): Completions {
  return {
    for: (text, cursor) =>
      completeCommand(sources, text, cursor) ??
      completeRest(sources, text, cursor) ??
      completeMention(sources, text, cursor) ??
      completeShell(sources, text, cursor),
  };
}
