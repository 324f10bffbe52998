import type { TerminalCommand } from "../../ui/ui.ts";
import { copyCommand } from "../copy.ts";
import { exportCommand } from "./export.ts";
import { forkCommand } from "./fork.ts";
import { handoffCommand } from "./handoff.ts";
import { newCommand, resumeCommand } from "./resume.ts";
import { sessionCommand, titleCommand } from "./session-info.ts";
import { treeCommand } from "./tree.ts";

/** What can be done with sessions, in the order in which they are listed. */
export const sessionCommands: readonly TerminalCommand[] = [
  resumeCommand,
  newCommand,
  treeCommand,
  forkCommand,
  handoffCommand,
  sessionCommand,
  titleCommand,
  exportCommand,
  copyCommand,
];
