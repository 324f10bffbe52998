import {
  type Harness,
  type HarnessOptions,
  openHarness,
} from "@gyre/coding/internal/harness/harness";
import type { RivalPlace } from "@gyre/coding/internal/race/rival";
import type { Setup } from "../../../core/setup.ts";

/**
 * Opens one of the rivals of a race: as the agent of the conversation, in a copy of its folder. The copy is all of its
 * workspace: folders that were added are no copies.
 */
export async function openRivalHarness(
  options: Omit<HarnessOptions, "approvals">,
  setup: Setup,
  place: RivalPlace,
): Promise<Harness> {
  const { addDirs: _added, ...settings } = setup.settings;
  const { layers = [], mcpServers = [], trusted } = setup;
  // What a trusted project runs may not be changed in the copy either.
  const { readTrustedRun } = await import("@gyre/coding/internal/settings/trusted-run");
  const servers = mcpServers.filter(({ check }) => check !== undefined);
  return openHarness({
    ...options,
    ...place,
    settings,
    // What a rival did can be adopted also where the program is killed.
    fileHistory: "at once",
    project: setup.cwd,
    ...(trusted && { trusted: readTrustedRun(layers, place.cwd, servers) }),
  });
}
