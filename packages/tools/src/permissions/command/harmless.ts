import type { CommandPart } from "./parts.ts";

/**
 * Which arguments make a program that only shows things do more, or show what is elsewhere. Long options may be cut
 * short, so that their first letter counts.
 */
const NONE = /^$/;
const SHOWS: ReadonlyMap<string, RegExp> = new Map([
  ...(
    "pwd whoami id uname arch nproc uptime echo printf basename dirname cmp comm cut tr nl tac rev " +
    "fold fmt paste column seq which cat head stat realpath readlink df strings od"
  )
    .split(" ")
    .map((program): [string, RegExp] => [program, NONE]),
  ["date", /^-\w*s|^--s|^[^+-]/],
  ["ls", /^-\w*L|^--d/],
  ["tail", /^-\w*[fF]|^--[frp]/],
  ["wc", /^--f/],
  ["du", /^-\w*[LDH]|^--[df]/],
  ["sort", /^-\w*[oT]|^--[otcf]/],
  ["uniq", NONE],
  ["file", /^-\w*[CmfzZ]|^--[cmfu]/],
  ["diff", /^-\w*[rl]|^--[rpft]/],
  ["tree", /^-\w*[loR]|^--[fo]/],
  ...["sha256sum", "sha1sum", "sha512sum", "md5sum", "cksum"].map((program): [string, RegExp] => [
    program,
    /^-\w*c|^--c/,
  ]),
  ...["grep", "egrep", "fgrep"].map((program): [string, RegExp] => [program, /^-\w*R|^--d/]),
  ["rg", /^-\w*[Lz]|^--(?:follow|pre|search-zip|hostname-bin)/],
  ["find", /^-(?:L|H|follow|delete|exec|ok|f(?:print|ls)|files0)/],
]);

/** Commands of git that change nothing. Settings of a repository can make them run programs. */
const GIT_SHOWS = new Set(
  (
    "status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree cat-file grep " +
    "for-each-ref name-rev merge-base count-objects version whatchanged show-ref cherry"
  ).split(" "),
);
/** The same, if they have no other words than these. */
const GIT_LISTS: ReadonlyMap<string, RegExp> = new Map([
  ["branch", /^(?:-a|-r|-v|-vv|--all|--remotes|--list|--show-current|--no-color)$/],
  ["tag", /^(?:-l|--list|-n\d*|--sort=[\w:-]+)$/],
  ["remote", /^(?:-v|--verbose)$/],
  ["stash", /^list$/],
  ["reflog", /^(?:show|-\d+|-n|\d+)$/],
]);

/** Print the version of a program that is installed. */
const VERSIONED = new Set(
  (
    "node npm npx git python python3 pip pip3 ruby gem perl php java javac gcc g++ clang cmake make bash sh zsh " +
    "docker rg jq sqlite3 psql"
  ).split(" "),
);
/** The same, but files of the project choose which version that is, and may name a program of their own. */
const CHOSEN = new Set(
  "yarn pnpm bun deno go cargo rustc rustup kubectl terraform tsc vitest eslint prettier".split(
    " ",
  ),
);

/** Do nothing but give a result. */
const TESTS = new Set(["true", "false", ":", "[", "[[", "test"]);

/**
 * Whether a command only shows what is in the places that it names: it changes nothing and runs nothing
 * else, and no word of it is expanded. `isConfined`: a sandbox is around it, so that what a repository
 * makes git run is confined as well.
 */
export function isHarmless(part: CommandPart, isConfined: boolean): boolean {
  const { words, assignments, redirects, escapes } = part;
  const [first, ...rest] = words;
  if (!first || assignments.length > 0 || !words.every(({ literal }) => literal)) return false;
  if (redirects.some(({ target }) => target.text !== "/dev/null")) return false;
  const program = first.text;
  const args = rest.map((word) => word.text);
  if (args.length === 1 && asksVersion(program, args[0] ?? "")) {
    return VERSIONED.has(program) || (isConfined && CHOSEN.has(program));
  }
  if (escapes.length > 0) return false;
  if (TESTS.has(program)) return true;
  if (program === "git") return isConfined && gitShows(args);
  const more = SHOWS.get(program);
  return more !== undefined && !args.some((arg) => more.test(arg));
}

function asksVersion(program: string, arg: string): boolean {
  // Other programs explain what they do with it, or read a program.
  return (
    /^(?:--version|-V)$/.test(arg) ||
    (arg === "-v" && /^(?:node|npm|npx|ruby|perl|php)$/.test(program))
  );
}

function gitShows(args: readonly string[]): boolean {
  const [command = "", ...rest] = args.filter((arg) => arg !== "--no-pager");
  if (GIT_SHOWS.has(command)) return !rest.some((arg) => arg.startsWith("--output"));
  const list = GIT_LISTS.get(command);
  if (!list) return false;
  return command === "stash" ? rest[0] === "list" : rest.every((arg) => list.test(arg));
}
