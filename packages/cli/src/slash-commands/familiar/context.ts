import type { CommandContext } from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import type { Environment } from "../../core/io.ts";

/** What these commands work with. */
export interface FamiliarContext extends Pick<CommandContext, "choose" | "signal"> {
  harness: Pick<Harness, "skills" | "toolset">;
  env: Environment;
  setup: { cwd: string; settings?: Settings };
}
