/*
 * Sessions of early versions have the output of the user's own commands inside the text of the
 * prompt that followed them, behind a header that says how long it is. This reads such prompts.
 */

const SEPARATOR = "\n\n";
const MARK = "[I ran this command myself (";
/** How it ended, the command as JSON, and how many characters follow the line. */
const HEAD =
  /\[I ran this command myself \([^()\n]*\): ("(?:[^"\\\n]|\\.)*"), characters: (\d{1,9})\]\n/y;
/** The same where line ends have become spaces, and the end may be missing. */
const IN_ONE_LINE = /\s\[I ran this command myself \([^()\n]*\): .*$/s;

/** What the user wrote, and the commands whose output was sent with it. */
export function readOldPrompt(text: string): { prompt: string; commands: readonly string[] } {
  const mark = SEPARATOR + MARK;
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
    const commands = commandsFrom(text, at);
    if (commands) return { prompt: text.slice(0, at), commands };
  }
  return { prompt: text, commands: [] };
}

/** What the user wrote, of a prompt that was made one line and cut. */
export function readOldPromptLine(text: string): string {
  return text.replace(IN_ONE_LINE, "");
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
    // Not written by the program: it is shown as it is.
    return json;
  }
}
