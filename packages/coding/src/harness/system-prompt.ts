import { PROVENANCE_NOTE } from "@gyre/tools";
import type { Settings } from "../settings/settings.ts";

const NAME = "You are gyre, a coding agent. ";
const BEFORE_FOLDER = "You work in ";
const AFTER_FOLDER = ` on ${process.platform}`;
const HABITS =
  "Look before you change, keep changes small, check them by running what the project has for that.";
const DENIED = "A call that was denied stays denied: go on without it, or say what you need.";
const MANNERS =
  "Commit only when asked. Name places as path:line. Note what must outlast old turns. Answer briefly.";

export interface PromptParts {
  folder: string;
  settings: Pick<Settings, "instructions" | "systemPrompt" | "appendSystemPrompt">;
  /** In place of the program's own text, where `settings` has none. */
  systemFile?: string | undefined;
  /** Where the pages about the program are. */
  docs?: string | undefined;
  /** Further paragraphs. */
  more?: readonly string[];
}

/**
 * What a model reads first. Written down with a session, and so the same in all of its
 * requests: nothing that changes with time may stand here.
 */
export function systemPrompt(parts: PromptParts): string {
  const { folder, settings, docs } = parts;
  const own = settings.systemPrompt ?? parts.systemFile;
  const place = `${BEFORE_FOLDER}${folder}${AFTER_FOLDER}.`;
  const about =
    own === undefined
      ? [NAME + place, HABITS, DENIED, MANNERS, ...(docs === undefined ? [] : [docsNote(docs)])]
      : [place, DENIED];
  const texts = [about.join(" "), ...(own === undefined ? [] : [own]), PROVENANCE_NOTE];
  return joinParagraphs(texts, parts);
}

/** What sub-agents read of the folder, of the user's settings and of the project, as the agent does. */
export function subAgentGuidance(parts: PromptParts): string {
  const about = `${BEFORE_FOLDER}${parts.folder}${AFTER_FOLDER}. ${HABITS} A call that was denied stays denied.`;
  return joinParagraphs([about], parts);
}

function joinParagraphs(texts: readonly string[], { settings, more = [] }: PromptParts): string {
  const { instructions, appendSystemPrompt } = settings;
  return [...texts, instructions, appendSystemPrompt, ...more].filter(Boolean).join("\n\n");
}

function docsNote(docs: string): string {
  return `About gyre: read ${docs}.`;
}

/** The prompt of a session, where it may be gone on with in another folder. */
export function movedPrompt(prompt: string, folder: string): string {
  const before = [NAME + BEFORE_FOLDER, BEFORE_FOLDER].find((begin) => prompt.startsWith(begin));
  const end = prompt.indexOf(AFTER_FOLDER);
  return before !== undefined && end > 0 ? `${before}${folder}${prompt.slice(end)}` : prompt;
}
