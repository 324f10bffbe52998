/**
 * What the user ran with `!` goes to the model in the prompt that follows it. It is marked
 * there, so that whoever shows the prompt can tell it from what the user wrote.
 */
export interface RanCommand {
  command: string;
  /** "exit code 0". */
  ended: string;
  /** What it printed. */
  said: string;
}

/** A call that the user made, and whether the model is told of it. */
export type RanBy = "user" | "user, aside";

const SEPARATOR = "\n\n";
const MARK = "[I ran this command myself (";
/** How it ended, the command as JSON, and how many characters follow the line. */
const HEAD =
  /\[I ran this command myself \([^()\n]*\): ("(?:[^"\\\n]|\\.)*"), characters: (\d{1,9})\]\n/y;
/** The same where line ends have become spaces, and the end may be missing. */
const IN_ONE_LINE = /\s\[I ran this command myself \([^()\n]*\): .*$/s;

/** How the model is told of a command. */
export function ranText({ command, ended, said }: RanCommand): string {
  return `${MARK}${ended}): ${JSON.stringify(command)}, characters: ${said.length}]\n${said}`;
}

/** What the user wrote, and the commands whose output was sent with it. */
export function promptOf(text: string): { prompt: string; commands: readonly string[] } {
  const mark = SEPARATOR + MARK;
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
    const commands = commandsFrom(text, at);
    if (commands) return { prompt: text.slice(0, at), commands };
  }
  return { prompt: text, commands: [] };
}

/** The same of a text that was made one line, and cut. */
export function promptLine(text: string): string {
  return text.replace(IN_ONE_LINE, "");
}

/** "with the output of `npm test`"; nothing where there is none. */
export function withOutputText(commands: readonly string[]): string {
  return commands.length === 0
    ? ""
    : `with the output of ${commands.map((command) => `\`${command}\``).join(", ")}`;
}

/** The commands up to the end of the text; undefined where something else follows. */
function commandsFrom(text: string, start: number): string[] | undefined {
  const commands: string[] = [];
  for (let at = start; at < text.length;) {
    if (!text.startsWith(SEPARATOR, at)) return undefined;
    HEAD.lastIndex = at + SEPARATOR.length;
    const [head, command = '""', length] = HEAD.exec(text) ?? [];
    if (head === undefined) return undefined;
    at += SEPARATOR.length + head.length + Number(length);
    if (at > text.length) return undefined;
    commands.push(commandIn(command));
  }
  return commands;
}

function commandIn(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    // Somebody else wrote it: it is shown as it is written.
    return json;
  }
}

const BY_USER = /^ran-by-user(-aside)?:/;

/** The id of a call of the user's own, which no service gives to one of its model. */
export function ranCallId(id: string, isAside: boolean): string {
  return `ran-by-user${isAside ? "-aside" : ""}:${id}`;
}

/** Whether the user made it. */
export function ranByOf(toolCallId: string): RanBy | undefined {
  const [found, aside] = BY_USER.exec(toolCallId) ?? [];
  if (found === undefined) return undefined;
  return aside === undefined ? "user" : "user, aside";
}
