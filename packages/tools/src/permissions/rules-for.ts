import { statSync } from "node:fs";
import { homedir } from "node:os";
import { posix, sep } from "node:path";
import type { Access } from "../contract/access.ts";
import type { CommandPart } from "./command/parts.ts";
import type { Danger } from "./danger/explain.ts";
import { ruleFor } from "./rule-for.ts";
import { ifThere } from "./follow/if-there.ts";

/** Programs with commands of their own: the rule is for one of these. */
const WITH_COMMANDS =
  /^(?:git|npm|pnpm|yarn|bun|deno|cargo|go|pip3?|uv|poetry|gem|bundle|composer|dotnet|mvn|gradlew?|make|just|gh|glab|brew|apt|apt-get|terraform|helm)$/;
/** Programs that do whatever they are given: no prefix of theirs says enough. */
const OPEN =
  /^(?:ba|da|z|k|fi|c|tc)?sh$|^(?:sudo|doas|su|env|xargs|parallel|find|fd|eval|exec|rm|dd|mv|cp|chmod|chown|curl|wget|ssh|scp|rsync|nc|socat|docker|podman|kubectl|npx|bunx|uvx|node|deno|bun|tsx|python[\d.]*|perl|ruby|php|awk|gawk|sed|psql|mysql|sqlite3)$/;
const PLAIN_WORD = /^[\w./:=@%+,-]+$/;

/**
 * The rules by which calls like this one need no approval, for each part of a command line: its program, with its command
 * where it has some, and whatever follows. Nothing where no rule is to be had: what destroys something is asked about each time.
 */
export async function rulesFor(request: {
  tool: string;
  access?: Access | undefined;
  danger?: Danger | undefined;
  isConfined?: boolean;
  /** Of a file outside of the workspace: for all of the folder that it is in. */
  isWide?: boolean;
}): Promise<string[] | undefined> {
  const { tool, access, danger, isConfined, isWide } = request;
  if (danger?.kind === "destructive") return undefined;
  const [target = ""] = access?.targets ?? [];
  if (isWide) return access?.outside && findFolderRule(target);
  const exact = ruleFor(request);
  if (access?.kind !== "run" || access.unsandboxed || access.destructive || !isConfined) {
    return exact === undefined ? undefined : [exact];
  }
  const { commandParts } = await import("./command/parts.ts");
  const { parts, unclear } = commandParts(target, { isPosix: access.language === "sh" });
  const prefixes = parts.filter((part) => !part.inert && !part.moves).map(findPrefix);
  if (unclear !== undefined || prefixes.length === 0 || prefixes.includes(undefined)) {
    return exact === undefined ? undefined : [exact];
  }
  const rules = prefixes.flatMap((prefix) => [`${tool}(${prefix})`, `${tool}(${prefix} *)`]);
  return [...new Set([...(parts.some(({ moves }) => moves) ? [`${tool}(cd *)`] : []), ...rules])];
}

/** The rule for all that is in the folder of a file, or in a folder; none for the folder of all, or of all users. */
function findFolderRule(target: string): string[] | undefined {
  const isFolder = ifThere(() => statSync(target))?.isDirectory() ?? false;
  const folder = isFolder ? target : posix.dirname(target);
  const home = homedir().replaceAll(sep, "/");
  if (folder === "/" || `${home}/`.startsWith(`${folder}/`)) return undefined;
  const rule = ruleFor({
    tool: "read",
    access: { kind: "read", targets: [`${folder}/`], outside: [folder], summary: "" },
  });
  return rule === undefined ? undefined : [rule.replace(/\)$/, "**)")];
}

/** What a part begins with that says what it does. */
function findPrefix({ words, assignments, escapes }: CommandPart): string | undefined {
  const [first, second, third] = words;
  if (!first?.literal || assignments.length > 0 || escapes.length > 0) return undefined;
  if (OPEN.test(first.text) || !PLAIN_WORD.test(first.text)) return undefined;
  if (!WITH_COMMANDS.test(first.text)) return first.text;
  const isCommand = (word: typeof second): boolean =>
    word?.literal === true && /^[\w][\w.:/-]*$/.test(word.text);
  if (!isCommand(second)) return undefined;
  const runs = /^(?:run|run-script)$/.test(second?.text ?? "");
  if (!runs) return `${first.text} ${second?.text}`;
  return isCommand(third) ? `${first.text} ${second?.text} ${third?.text}` : undefined;
}
