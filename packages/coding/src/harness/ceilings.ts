import type { Model } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";
import { CodingAgentError } from "../core/errors.ts";
import { isMcpTool } from "../mcp/tools.ts";
import type { Settings } from "../settings/settings.ts";
import { modelValue } from "../text/choices.ts";

/** The most that a session of a server may have, whatever a client, a file or a project asks for. */
export interface Ceilings {
  readonly mode: PermissionMode;
  /** By name. Absent: every tool. */
  readonly tools?: readonly string[];
  /** As service/id, the default first. Absent: every model. */
  readonly models?: readonly string[];
  /** Folders that sessions may work in or below, real paths. */
  readonly roots: readonly string[];
  /** Whether commands may run outside of the sandbox, where they can read keys. */
  readonly unsandboxed: boolean;
  /** Places that no tool may read or change, absolute. */
  readonly secret: readonly string[];
}

/** Each mode allows all that those before it allow. */
const MODE_ORDER: readonly PermissionMode[] = ["plan", "ask", "auto-edit", "auto", "full"];

/** Whether a mode allows no more than another. */
export function isModeWithin(mode: PermissionMode, most: PermissionMode): boolean {
  return MODE_ORDER.indexOf(mode) <= MODE_ORDER.indexOf(most);
}

/** The one of two modes that allows less. */
export function lowerMode(mode: PermissionMode, most: PermissionMode): PermissionMode {
  return isModeWithin(mode, most) ? mode : most;
}

/** Whether a list has a tool. One name of an MCP server stands for all: they are opened together. */
export function isToolWithin(name: string, most: readonly string[]): boolean {
  return most.includes(name) || (isMcpTool(name) && most.some(isMcpTool));
}

/** The settings without what is above the ceilings. The model is checked when it is found by its name. */
export function lowerSettings(settings: Settings, ceilings: Ceilings | undefined): Settings {
  if (!ceilings) return settings;
  const { mode = "ask", tools = ceilings.tools } = settings;
  const most = ceilings.tools;
  return {
    ...settings,
    mode: lowerMode(mode, ceilings.mode),
    ...(tools && { tools: most ? tools.filter((name) => isToolWithin(name, most)) : tools }),
  };
}

export function isModelAllowed(model: Model, ceilings: Ceilings | undefined): boolean {
  return ceilings?.models?.includes(modelValue(model)) ?? true;
}

/** Throws an error with a message for the user. */
export function assertModel(model: Model, ceilings: Ceilings | undefined): void {
  if (isModelAllowed(model, ceilings)) return;
  const names = ceilings?.models?.join(", ");
  const what = `The model ${modelValue(model)} is not offered here. There are: ${names}.`;
  const cause = Object.assign(new Error(what), { code: "model_not_found" });
  throw new CodingAgentError("bad_option", what, { cause });
}
