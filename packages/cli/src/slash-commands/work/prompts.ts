/** What `/init` asks for. */
export function initPrompt(wish: string): string {
  return [
    "Write AGENTS.md at the root of this repository, for coding agents that will work here; if it is there, improve it.",
    "Look first: the README, manifests, scripts, CI files, the folders, a few tests. Other files for agents (CLAUDE.md, .cursorrules, .github/copilot-instructions.md) have what is worth keeping.",
    "Say how to build, lint and test, how to run one test, how the code is laid out where that takes several files to see, and the rules of style that the code follows. Leave out what every project has and what a look at a folder shows. At most 100 lines; nothing that you have not seen.",
    ...(wish === "" ? [] : [wish]),
  ].join("\n\n");
}

/** What `/review` asks for: of a range of commits, or of what is not committed. */
export function reviewPrompt(range: string): string {
  const what =
    range === ""
      ? "what is not committed yet (git status, git diff, git diff --staged; new files whole)"
      : `the change ${range} (git log, git diff ${range})`;
  return [
    `Review ${what}. Change nothing.`,
    "Read enough of the code around it to judge it. Look for defects: wrong results, cases that are not handled, races, leaks, security, what callers or tests rely on. Check a suspicion before you report it.",
    "List findings, the worst first, each with path:line, what happens and in which case, and how to fix it. Leave out matters of taste. If there is nothing, say so.",
  ].join("\n\n");
}
