import { homedir } from "node:os";
import type { AgentMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import {
  type InstructionFile,
  instructionNews,
  instructionsText,
  readInstructions,
} from "./instructions.ts";
import { configFolder } from "../settings/file.ts";
import { oneLine } from "../settings/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { findSkills, type Skill, SKILL_TOOL, skillsText } from "./skills.ts";
import type { Environment } from "../core/io.ts";

/** What the user and the project have written for agents. */
export interface Guidance {
  readonly files: readonly InstructionFile[];
  readonly skills: readonly Skill[];
  /** Whether the agent has the tool for them. */
  readonly hasSkillTool: boolean;
}

/** The folder to read it for, and what is kept secret there. */
interface GuidedFolder {
  cwd: string;
  env: Environment;
  ceilings?: { readonly secret: readonly string[] };
  warn: (text: string) => void;
}

/**
 * Reads it, once. Skills are there unless tools were named and theirs was not; a session
 * that had the tool keeps it, even if no skill is left: its requests begin as before.
 */
export async function readGuidance(
  { cwd, env, warn, ceilings }: GuidedFolder,
  { instructionFiles = true, skills: isWithSkills = true, tools }: Settings,
): Promise<Guidance> {
  const home = homedir();
  // What they quote, names of folders too, is for a repository's author to choose.
  const report = (text: string): void => warn(oneLine(text));
  const secret = ceilings?.secret ?? [];
  const where = { cwd, home, config: configFolder(env, home), secret, warn: report };
  const files = instructionFiles ? readInstructions(where) : [];
  const isNamed = tools?.includes(SKILL_TOOL);
  const skills = isWithSkills && isNamed !== false ? await findSkills(where) : [];
  return { files, skills, hasSkillTool: isNamed ?? skills.length > 0 };
}

/** What the system prompt says of it. */
export function guidanceTexts({ files, skills }: Guidance): string[] {
  return [skillsText(skills), instructionsText(files)].filter((text) => text !== undefined);
}

/** The message to a model about instruction files that have changed since it last got them. */
export function guidanceNews(
  { files }: Guidance,
  systemPrompt: string,
  messages: readonly AgentMessage[],
): string | undefined {
  const asked = messages.filter((message) => message.role === "user").map(textOf);
  return instructionNews(files, [systemPrompt, ...asked]);
}
