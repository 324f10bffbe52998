import picomatch from "picomatch";

/** Read-only wherever they are, with all that is beneath them. */
export const ANYWHERE: readonly (readonly string[])[] = [
  [".gyre"],
  [".mcp.json"],
  [".claude"],
  [".codex"],
  [".cursor"],
  [".gemini"],
  [".agents"],
  [".aider.conf.yml"],
  [".amp"],
  [".kiro"],
  [".opencode"],
  ["opencode.json"],
  ["opencode.jsonc"],
  [".pi"],
  [".qwen"],
  [".roo"],
  [".windsurf"],
  [".idea"],
  [".zed"],
  [".nvim.lua"],
  [".nvimrc"],
  [".exrc"],
  [".devcontainer"],
  [".devcontainer.json"],
  [".envrc"],
  [".husky"],
  [".cargo", "config"],
  [".cargo", "config.toml"],
  [".github", "workflows"],
  [".vscode", "tasks.json"],
  [".vscode", "settings.json"],
  [".vscode", "launch.json"],
  [".vscode", "mcp.json"],
];

/** Folders in which some things are protected and others not. */
export const PARTLY_PROTECTED: readonly string[] = [
  ...new Set(ANYWHERE.flatMap((place) => (place.length > 1 ? place.slice(0, 1) : []))),
  ".git",
];

/** In a folder of git (its modules and worktrees have their own): what runs or redirects. */
export const IN_GIT: ReadonlySet<string> = new Set([
  "config",
  "config.worktree",
  "hooks",
  "attributes",
  "commondir",
  "gitdir",
  "alternates",
]);

const ASCII = /^[ -~]*$/;

/** In a home folder: what a login or a tool of the user reads, and keys. */
const IN_HOME = new Set([
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".bash_aliases",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".ssh",
  ".config",
  ".gnupg",
  ".gitconfig",
  ".npmrc",
  ".netrc",
]);

/** Whether tools may not change a place, judged by the names that lead to it from the workspace. */
export type Protection = (names: readonly string[]) => boolean;

/**
 * The places that are always protected and those of `patterns`; `home` is where the home
 * folder is from the workspace, if inside. Names are compared without case and without
 * what some file systems overlook, on all systems: that protects too much rather than
 * too little.
 */
export function protection(
  patterns: readonly string[],
  home: readonly string[] | undefined,
): Protection {
  const homeNames = home?.map(folded);
  const matches =
    patterns.length > 0 ? picomatch([...patterns], { dot: true, nocase: true }) : undefined;
  return (names) => {
    const plain = names.map(folded);
    if (isAnywhere(plain) || isInGit(plain)) return true;
    if (homeNames && isInHome(plain, homeNames)) return true;
    return matches !== undefined && (isMatched(names, matches) || isMatched(plain, matches));
  };
}

function isAnywhere(names: readonly string[]): boolean {
  return names.some((_, start) =>
    ANYWHERE.some((place) => place.every((part, offset) => names[start + offset] === part)),
  );
}

function isInGit(names: readonly string[]): boolean {
  // All of it: a rebase to continue names commands, and a file `.git` leads to another config.
  if (names.includes(".git")) return true;
  // A bare repository; a checkout may be called so too, and has folders of its own.
  return names.some((name, index) => name.endsWith(".git") && IN_GIT.has(names[index + 1] ?? ""));
}

function isInHome(names: readonly string[], home: readonly string[]): boolean {
  const name = names[home.length];
  return (
    name !== undefined && IN_HOME.has(name) && home.every((part, index) => part === names[index])
  );
}

/** A pattern that matches a folder protects what is in it. */
function isMatched(names: readonly string[], matches: (path: string) => boolean): boolean {
  return names.some((_, last) =>
    matches(
      names
        .slice(0, last + 1)
        .join("/")
        // A pattern's "anything" ends at a line break, which a name may have.
        .replace(/[\n\r\u2028\u2029]/g, "_"),
    ),
  );
}

/** A name as the most careless file system would take it. */
export function folded(name: string): string {
  // Most names have nothing else, and the table of Unicode takes the engine a millisecond to look up.
  const visible = ASCII.test(name)
    ? name
    : name.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  const plain = visible
    // To NTFS, ".git::$INDEX_ALLOCATION" is another name of ".git".
    .replace(/:.*$/s, "")
    .toLowerCase()
    .replace(/[. ]+$/, "");
  return plain === "git~1" ? ".git" : plain;
}

/**
 * Whether tools may neither see nor change a place. `places` are the names that lead to each from
 * the workspace. Names are compared as `protection` does.
 */
export function hiding(places: readonly (readonly string[])[]): Protection {
  const hidden = places.map((names) => names.map(folded));
  return (names) => {
    if (hidden.length === 0) return false;
    const plain = names.map(folded);
    return hidden.some((place) => place.every((name, index) => name === plain[index]));
  };
}
