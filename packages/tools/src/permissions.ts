import type { Middleware } from "@gyre/agent";
import { TOOLS } from "./catalog.ts";
import { createPermissions, type PermissionSetup } from "./permissions/permissions.ts";

export interface PermissionOptions extends Omit<PermissionSetup, "tools"> {
  /** The tools that there are: a rule for another one is an error. Default: ours. */
  tools?: PermissionSetup["tools"];
}

/**
 * Decides which calls run: by rules, then by mode, then by asking. Pass it as the last of an
 * agent's middleware, so that nothing changes a call after it was approved, and to sub-agents
 * as well. Whatever goes wrong on the way to a decision is a denial. Throws `RuleError` at
 * once where a rule is wrong.
 */
export function permissions(options: PermissionOptions): Middleware {
  return createPermissions({ tools: TOOLS, ...options });
}
