import type { Model } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";
import { CodingAgentError } from "../core/errors.ts";
import { isMcpTool } from "../mcp/tools.ts";
import { isInFolders } from "../settings/project-file.ts";
import type { Settings } from "../settings/settings.ts";
import { isModeWithin, lowerMode, modelValue } from "../text/choices.ts";

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

/** Throws an error with a message for the user. */
export function assertMode(mode: PermissionMode, ceilings: Ceilings | undefined): void {
  if (!ceilings || isModeWithin(mode, ceilings.mode)) return;
  const what = `Mode "${mode}" is more than this server allows: "${ceilings.mode}".`;
  throw new CodingAgentError("bad_option", what);
}

/** Whether a list has a tool. One name of an MCP server stands for all: they are opened together. */
export function isToolWithin(name: string, most: readonly string[]): boolean {
  return most.includes(name) || (isMcpTool(name) && most.some(isMcpTool));
}

/** Whether a folder is one that sessions may work in. */
export function isWithinRoots(folder: string, ceilings: Ceilings | undefined): boolean {
  return !ceilings || isInFolders(folder, ceilings.roots);
}

/** The settings without what is above the ceilings. The model is checked when it is found by its name. */
export function lowerSettings(settings: Settings, ceilings: Ceilings | undefined): Settings {
  if (!ceilings) return settings;
  const { mode = "ask", tools = ceilings.tools, addDirs } = settings;
  const most = ceilings.tools;
  return {
    ...settings,
    mode: lowerMode(mode, ceilings.mode),
    ...(addDirs && { addDirs: addDirs.filter((folder) => isWithinRoots(folder, ceilings)) }),
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
