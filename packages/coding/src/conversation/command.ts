/** One thing of a list. */
export interface Choice<T> {
  value: T;
  label: string;
  /** Shown dim behind the label. */
  detail?: string;
  /** The filter looks for what is typed in this too. */
  search?: string;
  /** A key that chooses it at once: `y`. */
  key?: string;
}

export interface Question<T> {
  title: string;
  /** Lines between the title and the list. */
  about?: readonly string[];
  choices: readonly Choice<T>[];
  /** Index of the choice that is marked at first. Default: the first. */
  start?: number;
  /** What is typed narrows the list down. Default: false. */
  filter?: boolean;
}

/** A cell of a table: plain text, a name or path that is shown literally, or a heading. */
export type Cell = string | { code: string } | { strong: string };

/** Something that a command shows. Each view renders it in its own way. */
export type CommandPart =
  /** Prose of the program itself, with inline Markdown. */
  | { type: "text"; markdown: string }
  | { type: "warning"; text: string }
  /** Lines that are shown as they are. */
  | { type: "code"; text: string }
  | { type: "table"; columns: readonly string[]; rows: readonly (readonly Cell[])[] }
  /** Shares of a whole, for a bar. A table says the same in numbers. */
  | { type: "bar"; segments: readonly { mark: string; value: number }[]; whole: number };

/** Another session, or another place in this one. */
export type OpenRequest =
  /** Another session, by its id or file. */
  | { session: string }
  /**
   * This session from an entry on; null: from its beginning. `edit` is put into the editor; `before`: it is the text of
   * this prompt.
   */
  | { entry: number | null; edit?: string; before?: number }
  /** A new session; `prompt` is put into the editor. */
  | { new: true; prompt?: string };

/** What a command wants done, in this order. */
export interface CommandResult {
  open?: OpenRequest;
  show?: readonly CommandPart[];
  /** Put into the editor. */
  edit?: string;
  /** Sent to the model, whatever it begins with: it is never taken for a command. */
  prompt?: string;
  /** The model is asked again from the transcript as it is: nothing is added to it. */
  retry?: boolean;
  /** The prompt waits until the agent is done. Default: false, it steers a run that is going on. */
  followUp?: boolean;
  /** Ends the program. */
  quit?: boolean;
}

/** What every command gets. */
export interface CommandContext {
  /**
   * Fires when the user stops the command. The command is abandoned then: its result is
   * dropped, and its questions reject.
   */
  readonly signal: AbortSignal;
  /**
   * Asks the user to choose. Undefined: the user dismissed the question. A view that cannot ask
   * lists the choices instead, and the question counts as dismissed.
   */
  choose: <T>(question: Question<T>) => Promise<T | undefined>;
  /** Shows something while the command is still at work. */
  show: (...parts: readonly CommandPart[]) => void;
}

/** Where a command can be used. */
export type View = "terminal" | "screen reader" | "editor";

/** `/name rest`. */
export interface Command<C extends CommandContext = CommandContext> {
  name: string;
  /** Other names for it. A command that has one of them as its name takes precedence. */
  aliases?: readonly string[];
  /** A file, skill or plugin of this name takes its place. Default: false. */
  isReplaceable?: boolean;
  /** One line for lists, without a period. */
  about: string;
  /** What to write behind its name. */
  hint?: string;
  /** Default: all of them. */
  views?: readonly View[];
  /** Whether it may be used while the agent works. Default: it may not. */
  allowWhileRunning?: boolean;
  /** It is not abandoned when it is stopped: it ends by itself soon after its signal fires, may still ask, and its result counts. */
  endsItself?: boolean;
  /** A string is shown as Markdown. Throws an error whose message is for the user. */
  run(
    rest: string,
    context: C,
  ): CommandResult | string | void | Promise<CommandResult | string | void>;
  /** What may follow, for a list below the editor. */
  complete?(
    rest: string,
    context: C,
  ): readonly Choice<string>[] | Promise<readonly Choice<string>[]>;
}

/** `/name rest` in what was typed; undefined where it is no command. */
export function parseCommand(text: string): { name: string; rest: string } | undefined {
  const [, name, rest = ""] = /^\/([\w:.-]*)(?:\s+([^]*))?$/.exec(text) ?? [];
  return name === undefined ? undefined : { name, rest: rest.trim() };
}

/** The command of a name, else the one that has it as another name. */
export function findCommand<C extends Pick<Command, "name" | "aliases">>(
  name: string,
  commands: readonly C[],
): C | undefined {
  return (
    commands.find((each) => each.name === name) ??
    commands.find(({ aliases }) => aliases?.includes(name))
  );
}

/** A paragraph of Markdown. */
export function text(markdown: string): CommandPart {
  return { type: "text", markdown };
}

/**
 * Runs a command until it is done, or until the signal of its context fires: "stopped". A
 * stopped command is abandoned at once, whatever it does about the signal, unless it `endsItself`.
 */
export async function runCommand<C extends CommandContext>(
  command: Command<C>,
  rest: string,
  context: C,
): Promise<CommandResult | "stopped"> {
  const { signal } = context;
  const guarded: C = {
    ...context,
    choose: async (question) => {
      signal.throwIfAborted();
      return context.choose(question);
    },
    show: (...parts) => {
      if (!signal.aborted) context.show(...parts);
    },
  };
  const run = async (given: C): Promise<CommandResult> => {
    const result = await command.run(rest, given);
    if (typeof result === "string") return { show: [text(result)] };
    return result ?? {};
  };
  if (command.endsItself) return run(context);
  const result = await orAborted(run(guarded), signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return result ?? "stopped";
}

/** Undefined: the signal fired first. What becomes of the work then is ignored. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
