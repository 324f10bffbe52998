import { toUrl } from "@gyre/ai";
import type { Access } from "../contract/access.ts";
import type { Danger } from "./danger/explain.ts";

/** What is asked about is a host that a command wants to connect to, and no call. */
export const NETWORK = "network";

/** A command that one rule can stand for: nothing that the shell takes apart or fills in. */
const PLAIN_COMMAND = /^[\w./:=@%+,-]+(?: [\w./:=@%+,-]+)*$/;
/** What a rule takes for the place that a command runs in. */
const PLACE = /^(?:in|unsandboxed)\b[^]*:/;
/** A path that means itself as a pattern. */
const PLAIN_PATH = /^[\w./@+,= -]+$/;
/** A rule with more is refused. */
const MAX_RULE_CHARS = 900;

function ruleForPath(tool: string, path: string): string | undefined {
  return PLAIN_PATH.test(path) && !/^(?:\/|\.\.)/.test(path) ? `${tool}(${path})` : undefined;
}

/**
 * The rule by which calls like this one need no approval. Nothing where no rule would do:
 * what cannot be undone and what leaves the sandbox is asked about each time.
 */
export function ruleFor({
  tool,
  access,
  danger,
}: {
  tool: string;
  danger?: Danger | undefined;
  /** Absent for a tool without `access`. */
  access?: Access | undefined;
}): string | undefined {
  if (danger?.kind === "destructive") return undefined;
  if (!access) return tool;
  if (tool === NETWORK) return `${NETWORK}(${access.targets[0] ?? ""})`;
  // What a server does is not known: the rule is for the tool.
  if (tool.startsWith("mcp__")) return tool;
  const { kind, targets, destructive, unsandboxed, folder = "." } = access;
  const [target] = targets;
  if (destructive || unsandboxed || target === undefined || targets.length > 1) return undefined;
  if (target.length > MAX_RULE_CHARS) return undefined;
  switch (kind) {
    case "run": {
      if (!PLAIN_COMMAND.test(target) || PLACE.test(target) || !PLAIN_PATH.test(folder))
        return undefined;
      return folder === "." ? `${tool}(${target})` : `${tool}(in ${folder}: ${target})`;
    }
    case "read":
      // The rule holds for all tools that read.
      if (access.outside) return PLAIN_PATH.test(target) ? `read(${target})` : undefined;
      return ruleForPath(tool, target);
    case "write":
      return ruleForPath(tool, target);
    case "network":
      return toUrl(target) && `${tool}(${toUrl(target)?.origin}/**)`;
    default:
      return undefined;
  }
}
