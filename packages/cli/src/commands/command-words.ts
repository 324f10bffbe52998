import { UsageError } from "../core/exit-codes.ts";

/**
 * A command line as a program and its arguments, split as a shell would: at spaces, but
 * for those in quotes or behind a backslash. Nothing is expanded: the program is started
 * without a shell. Throws `UsageError` where a quote has no end.
 */
export function splitCommand(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (quote !== "" && char === quote) quote = "";
    else if (char === "\\" && quote !== "'" && at + 1 < line.length) {
      const next = line.charAt(++at);
      // Inside of double quotes it stands for itself, but before these.
      const isPlain = quote === '"' && !'"\\$`'.includes(next);
      word = (word ?? "") + (isPlain ? char + next : next);
    } else if (quote !== "") word = (word ?? "") + char;
    else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (!/\s/.test(char)) word = (word ?? "") + char;
    else if (word !== undefined) {
      words.push(word);
      word = undefined;
    }
  }
  if (quote !== "") throw new UsageError(`A quote (${quote}) has no end in --command.`);
  if (word !== undefined) words.push(word);
  return words;
}
