import { homedir } from "node:os";
import type { AgentMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import {
  type InstructionFile,
  instructionNews,
  instructionsText,
  readInstructions,
  readSystemFile,
} from "./instructions.ts";
import { listImports } from "./imports.ts";
import { configFolder, describeCode } from "../settings/file.ts";
import { oneLine } from "../settings/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { SKILL_GROUP } from "../core/tool-lists.ts";
import { findSkills, type Skill, SKILL_TOOL, skillFolders, skillsText } from "./skills.ts";
import { AgentTexts, agentTextFolder, callNoteFolder, type HeldText } from "./agent-texts.ts";
import { recordKilledCalls } from "./call-note.ts";
import { type AgentFile, agentFolders, findAgentFiles } from "./agent-files.ts";
import type { GuidancePlaces } from "./guidance-files.ts";
import { projectFolders } from "./project-folders.ts";
import { claudeFolder, realPath } from "../settings/project-file.ts";
import type { Environment } from "../core/environment.ts";

const TASK_TOOL = "task";

/** What the user and the project have written for agents. */
export interface Guidance {
  readonly files: readonly InstructionFile[];
  /** What the system prompt begins with, in place of the program's own text. */
  readonly system?: InstructionFile | undefined;
  readonly skills: readonly Skill[];
  /** Whether the agent has the tool for them. */
  readonly hasSkillTool: boolean;
  /** Sub-agents that files describe. */
  readonly agents: readonly AgentFile[];
  /** What is left out of it: agents wrote it, and the user has not seen it. */
  readonly held: readonly HeldText[];
}

/** The folder to read it for, and what is kept secret there. */
interface GuidedFolder {
  cwd: string;
  env: Environment;
  /** Default: the user's. */
  home?: string;
  ceilings?: { readonly secret: readonly string[] };
  warn: (text: string) => void;
}

/**
 * Reads it, once. Skills are there unless tools were named and theirs was not; a session
 * that had the tool keeps it, even if no skill is left: its requests begin as before.
 */
export async function readGuidance(
  { cwd, env, warn, ceilings, home = homedir() }: GuidedFolder,
  { instructionFiles = true, skills: isWithSkills = true, tools }: Settings,
): Promise<Guidance> {
  // What they quote, names of folders too, is for a repository's author to choose.
  const report = (text: string): void => warn(oneLine(text));
  const secret = ceilings?.secret ?? [];
  const texts = openTexts(env, report);
  const held: HeldText[] = [];
  const where = {
    cwd,
    home,
    config: configFolder(env, home),
    claude: claudeFolder(env, home),
    secret,
    warn: report,
    ...(!texts.isEmpty && { texts }),
    hold: (text: HeldText) => void held.push(text),
  };
  const files = instructionFiles ? readInstructions(where) : [];
  const system = instructionFiles ? readSystemFile(where) : undefined;
  const isNamed = tools?.includes(SKILL_GROUP) ? undefined : tools?.includes(SKILL_TOOL);
  const skills = isWithSkills && isNamed !== false ? await findSkills(where) : [];
  const agents = tools?.includes(TASK_TOOL) === false ? [] : await findAgentFiles(where);
  return { files, system, skills, agents, hasSkillTool: isNamed ?? skills.length > 0, held };
}

/** The records, with what calls wrote whose process was killed meanwhile. */
function openTexts(env: Environment, warn: (text: string) => void): AgentTexts {
  const texts = new AgentTexts(agentTextFolder(env));
  try {
    recordKilledCalls(callNoteFolder(env), texts);
  } catch (error) {
    warn(
      `What the agent of a killed program has changed cannot be recorded (${describeCode(error)}). Look at the instruction files and skills: they are used.`,
    );
  }
  return texts;
}

/** What agents wrote for agents that count for work in a folder, and the user has not seen. */
export async function findHeldTexts(
  folder: Omit<GuidedFolder, "warn">,
  settings: Settings,
): Promise<readonly HeldText[]> {
  if (openTexts(folder.env, () => {}).isEmpty) return [];
  return (await readGuidance({ ...folder, warn: () => {} }, settings)).held;
}

/** The user has seen these, and wants them to be used. */
export function acceptHeldTexts(held: readonly HeldText[], env: Environment): void {
  const texts = new AgentTexts(agentTextFolder(env));
  for (const { content, path } of held) texts.accept(content, realPath(path));
}

/** Where texts for agents are that count for work in a folder, now or in one below it. */
export function guidancePlaces(
  cwd: string,
  env: Environment,
  files: readonly InstructionFile[],
): GuidancePlaces {
  const home = homedir();
  const config = configFolder(env, home);
  const folders = projectFolders(cwd, home);
  const above = folders.slice(0, -1);
  const whole: GuidancePlaces["whole"] = [
    realPath(cwd),
    ...skillFolders([...above, realPath(home)], config),
    ...agentFolders([...above, realPath(home)], config),
  ];
  return {
    whole,
    single: [...above, config, claudeFolder(env, home)],
    // What is imported and not there yet would count as soon as a call writes it.
    files: files
      .flatMap(({ path, text }) => [path, ...listImports(text, path, home)])
      .map(realPath),
  };
}

/** What the system prompt says of it. */
export function guidanceTexts({ files, skills }: Guidance): string[] {
  return [skillsText(skills), instructionsText(files)].filter((text) => text !== undefined);
}

/** The message to a model about instruction files that have changed since it last got them. */
export function guidanceNews(
  { files, held }: Guidance,
  systemPrompt: string,
  messages: readonly AgentMessage[],
): string | undefined {
  const asked = messages.filter((message) => message.role === "user").map(textOf);
  const names = held.flatMap(({ name }) => name ?? []);
  return instructionNews(files, [systemPrompt, ...asked], { held: names });
}
