import type { CommandParts } from "../command/parts.ts";
import { isLocalAddress } from "./network.ts";

/** The hosts that programs reach unless they are set up otherwise. */
const REGISTRIES: readonly [RegExp, readonly string[]][] = [
  [/^(?:npm|npx|pnpm|pnpx|bunx?|yarn|corepack)$/, ["registry.npmjs.org", "registry.yarnpkg.com"]],
  [/^(?:pip3?|pipx|uvx?|poetry|pdm|pipenv|python[\d.]*)$/, ["pypi.org", "files.pythonhosted.org"]],
  [/^cargo$/, ["index.crates.io", "static.crates.io", "crates.io"]],
  [/^go$/, ["proxy.golang.org", "sum.golang.org"]],
  [/^(?:gem|bundle)$/, ["rubygems.org", "index.rubygems.org"]],
  [/^composer$/, ["repo.packagist.org"]],
  [/^(?:mvn|gradlew?)$/, ["repo.maven.apache.org", "repo1.maven.org"]],
];

/** The hosts that a person who approves a command line sees in it: those that it names, and those of its package managers. */
export function listHosts(commands: readonly CommandParts[]): string[] {
  const hosts = new Set<string>();
  for (const { words } of commands.flatMap(({ parts }) => parts)) {
    const [first, ...rest] = words;
    const program = first?.text.slice(first.text.lastIndexOf("/") + 1) ?? "";
    for (const [names, known] of REGISTRIES)
      if (names.test(program)) for (const host of known) hosts.add(host);
    for (const { text, literal } of rest) {
      const host = literal ? findHost(text) : undefined;
      if (host !== undefined) hosts.add(host);
    }
  }
  return [...hosts];
}

function findHost(word: string): string | undefined {
  const address = /^https?:\/\//i.test(word) ? word : undefined;
  if (address === undefined || isLocalAddress(address)) return undefined;
  try {
    const { hostname, port } = new URL(address);
    return /^[a-z0-9.-]+$/.test(hostname)
      ? `${hostname}${port === "" ? "" : `:${port}`}`
      : undefined;
  } catch {
    // No address after all.
    return undefined;
  }
}
