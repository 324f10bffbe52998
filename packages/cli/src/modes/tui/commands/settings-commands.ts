import type { TerminalCommand } from "../ui/ui.ts";
import { compactCommand } from "./compact.ts";
import { contextCommand } from "./context.ts";
import { costCommand } from "./cost.ts";
import { helpCommand } from "./help.ts";
import { mcpCommand } from "./mcp.ts";
import { modelCommand } from "./model.ts";
import { modeCommand, permissionsCommand } from "./permissions.ts";
import { thinkingCommand } from "./thinking.ts";
import { toolsCommand } from "./tools.ts";

/** `/quit`: ends the program. */
export const quitCommand: TerminalCommand = {
  name: "quit",
  about: "leave",
  anytime: true,
  run: (_rest, world) => world.quit(),
};

/** What is set and shown, in the order in which they are listed. `all` is for `/help`. */
export function settingsCommands(all: () => readonly TerminalCommand[]): TerminalCommand[] {
  return [
    modelCommand,
    thinkingCommand,
    modeCommand,
    permissionsCommand,
    toolsCommand,
    mcpCommand,
    contextCommand,
    compactCommand,
    costCommand,
    helpCommand(all),
    quitCommand,
  ];
}
