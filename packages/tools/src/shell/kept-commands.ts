import type { ToolEnv } from "../contract/env.ts";
import type { KeptLayer } from "../effects/layers.ts";

/** A command that ran in a layer, and whose effects were kept. */
export type KeptCommand = KeptLayer;

/** Commands whose effects were kept in a workspace and can be undone, the newest first. */
export async function listKeptCommands(env: ToolEnv): Promise<KeptCommand[]> {
  const { findHome } = await import("./rehearse.ts");
  const home = await findHome(env);
  if ("why" in home) return [];
  const { listKept } = await import("../effects/layers.ts");
  return listKept(home);
}

/**
 * Takes back what a command did, and brings back what it deleted. Rejects, and changes nothing, where one of
 * these files was changed since.
 */
export async function undoKeptCommand(env: ToolEnv, command: KeptCommand): Promise<void> {
  const { findHome } = await import("./rehearse.ts");
  const home = await findHome(env);
  if ("why" in home) throw new Error(home.why);
  const { undoKept } = await import("../effects/layers.ts");
  await undoKept(home, command);
}
