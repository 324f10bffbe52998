import { homedir } from "node:os";
import type { Toolset } from "@gyre/tools";
import type { EditDiagnostics } from "../diagnostics/edit-diagnostics.ts";
import type { FileRecorder } from "../file-history/recorder.ts";
import { AgentTexts, agentTextFolder, callNoteFolder } from "../guidance/agent-texts.ts";
import { type Guidance, guidancePlaces, guidanceTexts } from "../guidance/guidance.ts";
import { GuidanceWatch } from "../guidance/guidance-watch.ts";
import type { SessionLog } from "./session/session-log.ts";
import { realPath } from "../settings/project-file.ts";
import type { Settings } from "../settings/settings.ts";
import { TaintWatch } from "../permissions/taint-watch.ts";
import type { HarnessOptions, Parts } from "./types.ts";

/** Records what calls do to files, where that is wanted. */
export async function openRecorder(
  { env, fileHistory, warn }: HarnessOptions,
  { env: { workspace }, jobs }: Toolset,
  log: SessionLog,
): Promise<FileRecorder | undefined> {
  if (!fileHistory) return undefined;
  const { FileRecorder } = await import("../file-history/recorder.ts");
  const { historyFolder } = await import("../file-history/lines/folders.ts");
  return new FileRecorder({
    workspace,
    session: () => log.session,
    isJobRunning: () => jobs.list().some(({ end }) => !end),
    folder: historyFolder(env),
    waitsForLooks: fileHistory === "at once",
    warn,
  });
}

/** Adds the errors that language servers find to results of calls that change files, where that is wanted. */
export async function openDiagnostics(
  settings: Settings,
  toolset: Toolset,
): Promise<EditDiagnostics | undefined> {
  if (settings.diagnostics === false) return undefined;
  const { EditDiagnostics: Opened } = await import("../diagnostics/edit-diagnostics.ts");
  return new Opened(toolset, settings);
}

/** Records what calls write for agents to read: it is not used before the user has seen it. */
export function watchGuidance(
  { cwd, env, warn }: HarnessOptions,
  { files, skills, agents }: Guidance,
  { jobs }: Toolset,
): GuidanceWatch {
  return new GuidanceWatch({
    places: guidancePlaces(cwd, env, files),
    texts: new AgentTexts(agentTextFolder(env)),
    noteFolder: callNoteFolder(env),
    inUse: new Map([...files, ...agents].map(({ path, content }) => [realPath(path), content])),
    skills: skills.map(({ folder }) => folder),
    isJobRunning: () => jobs.list().some(({ end }) => !end),
    warn,
  });
}

/** Notes where names in calls come from. What the user stands for is not from elsewhere. */
export function watchNames(
  { options, settings, guidance, context, ruleBook }: Parts,
  toolset: Toolset,
  log: SessionLog,
): TaintWatch {
  const { systemPrompt, instructions, appendSystemPrompt, allow = [], domains = [] } = settings;
  const texts = [systemPrompt, instructions, appendSystemPrompt, ...guidanceTexts(guidance)];
  const rules = [...allow, ...domains, ...ruleBook.all.map(({ rule }) => rule)];
  return new TaintWatch({
    toolset,
    session: () => log.session,
    messages: context?.messages ?? [],
    given: [...texts.filter((text) => text !== undefined), ...rules],
    home: options.env["HOME"] || homedir(),
    warn: options.warn,
  });
}

/** What records what calls do. */
export interface Recorders {
  taint: TaintWatch;
  fileHistory: FileRecorder | undefined;
  diagnostics: EditDiagnostics | undefined;
  watch: GuidanceWatch;
}
