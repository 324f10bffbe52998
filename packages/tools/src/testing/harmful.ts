/*
 * What a program would run or write because of its arguments, for the tests of the table of
 * escapes: said here a second time, in another way, of the programs that random lines name.
 */

const HARM: ReadonlyMap<string, (args: readonly string[]) => boolean> = new Map([
  [
    "find",
    (args) =>
      args.some((arg) =>
        /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/.test(arg),
      ),
  ],
  ["git", isHarmfulGit],
  ["sed", isHarmfulSed],
  ["sort", (args) => someOption(args, "kSTto", /^-(?:[^-k][^k]*)?o|^--o/)],
  [
    "tar",
    (args) => /^[a-z]*I/.test(args[0] ?? "") || someOption(args, "CfI", /^--to-command|^-[xc]*I/),
  ],
  ["curl", (args) => someOption(args, "HoKd", /^-[sS]*[oKOd]|^--output$/)],
  ["node", (args) => /^(?:-e|--eval|-p|--import.*)$/.test(args[0] ?? "")],
  ["python3", (args) => /^-[uB]*[cm]/.test(args.find((arg) => !/^-[uBV]+$/.test(arg)) ?? "")],
]);

/** Whether these words, as a program gets them, make it run or write something else. */
export function isHarmful([program = "", ...args]: readonly string[]): boolean {
  return HARM.get(program)?.(args) ?? false;
}

/** An option of this form; `valued` are the letters behind which a value follows. */
function someOption(args: readonly string[], valued: string, form: RegExp): boolean {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") return false;
    if (form.test(arg)) return true;
    if (arg.length === 2 && arg.startsWith("-") && valued.includes(arg.charAt(1))) at++;
  }
  return false;
}

function isHarmfulGit(args: readonly string[]): boolean {
  const [first = "", ...rest] = args;
  if (first === "--no-pager") return isHarmfulGit(rest);
  if (first === "-c") return true;
  if (/^(?:difftool|remote-ext|config|filter-branch|.*--helper)$/.test(first)) return true;
  return /^(?:log|diff|show)$/.test(first) && someOption(rest, "", /^--output/);
}

function isHarmfulSed(args: readonly string[]): boolean {
  const scripts: string[] = [];
  const operands: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") {
      operands.push(...args.slice(at + 1));
      break;
    }
    const [, letter = "", value = ""] = /^-[nEsb]*([eifl])(.*)$/s.exec(arg) ?? [];
    if (letter === "i" || letter === "f") return true;
    if (letter !== "") {
      const given = value === "" ? (args[++at] ?? "") : value;
      if (letter === "e") scripts.push(given);
    } else if (!arg.startsWith("-")) {
      operands.push(arg);
    }
  }
  const [script = ""] = scripts.length > 0 ? [scripts.join("\n")] : operands;
  return /^1?e|^w|\/e$|\n1?e/.test(script);
}
