/** Options of a program, before its own command, that are followed by a value. */
const GLOBAL_VALUES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["git", new Set(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"])],
  ["npm", new Set(["--prefix", "-C", "-w", "--workspace", "--registry"])],
  ["pnpm", new Set(["-C", "--dir", "--filter", "-F"])],
  ["yarn", new Set(["--cwd"])],
  ["cargo", new Set(["-Z", "--config", "-C", "--color"])],
]);

/** The words that are no options, nor values of a program's own ones. */
export function listOperands(program: string, args: readonly string[]): string[] {
  const values = GLOBAL_VALUES.get(program);
  const found: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? "";
    if (values?.has(arg)) index++;
    else if (!arg.startsWith("-")) found.push(arg);
  }
  return found;
}

/** A long option, also cut short or with a value, or a short one, also among others. */
export function hasOption(args: readonly string[], long?: string, short?: RegExp): boolean {
  return args.some((arg) => {
    const [name = ""] = arg.split("=", 1);
    if (long !== undefined && name.length >= 4 && long.startsWith(name)) return true;
    return (
      name === long || (short !== undefined && /^-[A-Za-z]/.test(arg) && short.test(arg.slice(1)))
    );
  });
}
