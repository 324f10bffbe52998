/** Commands of Claude Code that there is none for here, and what to do instead. */
export const INSTEAD: Readonly<Record<string, string>> = {
  bug: "A report to the maintainers has what `gyre doctor --json` prints.",
  feedback: "A report to the maintainers has what `gyre doctor --json` prints.",
  ide: "`gyre acp` is for editors.",
  "install-github-app": "The page about the GitHub Action says how to set it up.",
  keybindings: '"keys" in the settings says which key does what; /help shows it.',
  logout: "`gyre logout SERVICE` removes a key.",
  "output-style": "Write how it should answer into AGENTS.md, or give --append-system-prompt.",
  plugin: '"plugins" in the settings names plugins.',
  "pr-comments": "Ask for them: it can run `gh pr view --comments`.",
  "privacy-settings": "There is nothing to set: gyre sends no telemetry.",
  "release-notes": "CHANGELOG.md has what is new.",
  sandbox: '/status shows the sandbox; "sandbox" in the settings turns it off.',
  "security-review": "/review looks for security as well.",
  statusline: '"statusLine" in the settings is the last row.',
  "terminal-setup":
    "There is nothing to set up: Shift+Enter, Ctrl+J or a backslash before Enter begins a new line.",
  upgrade: "Install the new version as you installed this one.",
};

/** What to do in place of a command that is not there; undefined where that is not known. */
export function findInstead(name: string): string | undefined {
  return Object.hasOwn(INSTEAD, name) ? `There is no /${name} here. ${INSTEAD[name]}` : undefined;
}
