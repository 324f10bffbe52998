import { homedir } from "node:os";
import { errorMessage, redact } from "@gyre/ai";
import { readGuidance } from "@gyre/coding/internal/guidance/guidance";
import type { Skill } from "@gyre/coding/internal/guidance/skills";
import { skillTool } from "@gyre/coding/internal/guidance/skills-tool";
import { configFolder } from "@gyre/coding/internal/settings/file";
import { claudeFolder } from "@gyre/coding/internal/settings/project-file";
import type { McpOffer, ServedPrompt, ServedResource } from "@gyre/mcp";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";
import { openSession, type SessionFileSummary, type SessionStore } from "@gyre/sessions";
import type { Io } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import { builtinCommands } from "../../slash-commands/builtin.ts";
import { type FileCommand, fileCommands } from "../../slash-commands/custom.ts";
import { entryText } from "../../text/session-text.ts";

/** Sessions that are listed; the template gives the others. */
export const MAX_LISTED_SESSIONS = 20;
/** Of one session: its end counts most. */
export const MAX_TRANSCRIPT_CHARS = 200_000;

const SKILL_URI = "gyre://skills/";
const SESSION_URI = "gyre://sessions/";
const MARKDOWN = "text/markdown";
const PLAIN = "text/plain";
const ARGUMENT = "arguments";

export interface OfferPlace extends Pick<Setup, "cwd" | "settings" | "warn"> {
  env: Io["env"];
  /** Absent: no sessions are offered. */
  store?: SessionStore;
}

/**
 * What `gyre mcp serve` offers beside tools: skills as resources and as prompts, commands in files as prompts, and the
 * sessions of the folder as resources, without what may be a key. What an agent wrote and the user has not
 * accepted is not among it, and nothing of it runs or changes anything.
 */
export async function createOffer(
  place: OfferPlace,
): Promise<Required<Pick<McpOffer, "prompts" | "resources" | "resourceTemplates">>> {
  const { cwd, env, settings, store, warn } = place;
  const { skills } = await readGuidance(
    { cwd, env, warn },
    { instructionFiles: false, ...(settings.skills !== undefined && { skills: settings.skills }) },
  );
  const home = homedir();
  const commands = await fileCommands({
    ...{ cwd, home, config: configFolder(env, home), claude: claudeFolder(env, home), warn },
    own: builtinCommands,
  });
  const listed = store ? await store.list({ cwd, limit: MAX_LISTED_SESSIONS }) : [];
  return {
    prompts: [
      ...commands.map(commandPrompt),
      ...skills.map((skill) => skillPrompt(skill, skills, cwd)),
    ],
    resources: [
      ...skills.map((skill) => skillResource(skill, skills, cwd)),
      ...listed.map(sessionResource),
    ],
    resourceTemplates: store
      ? [
          {
            uriTemplate: `${SESSION_URI}{id}`,
            name: "session",
            description: "The transcript of a session of this folder, by its id",
            mimeType: PLAIN,
            async read({ id }) {
              const all = await store.list({ cwd });
              const found = all.find((session) => session.id === id);
              return found && readTranscript(found);
            },
            complete: async (_, value) =>
              (await store.list({ cwd })).map(({ id }) => id).filter((id) => id.startsWith(value)),
          },
        ]
      : [],
  };
}

function commandPrompt({ about, fill, hint, name }: FileCommand): ServedPrompt {
  return {
    name,
    description: about,
    arguments: [{ name: ARGUMENT, ...(hint !== undefined && { description: hint }) }],
    get: ({ [ARGUMENT]: rest = "" }) => fill(rest),
  };
}

function skillPrompt(skill: Skill, skills: readonly Skill[], cwd: string): ServedPrompt {
  return {
    name: `skill:${skill.name}`,
    description: skill.description,
    arguments: [{ name: ARGUMENT, description: "what to do by it" }],
    async get({ [ARGUMENT]: rest = "" }, { signal }) {
      const text = await readSkill(skill, skills, cwd, signal);
      return rest === "" ? text : `${text}\n\nDo this by the skill above: ${rest}`;
    },
  };
}

function skillResource(skill: Skill, skills: readonly Skill[], cwd: string): ServedResource {
  return {
    uri: `${SKILL_URI}${skill.name}`,
    name: skill.name,
    description: skill.description,
    mimeType: MARKDOWN,
    read: ({ signal }) => readSkill(skill, skills, cwd, signal),
  };
}

/** The text that the agent itself would get. */
async function readSkill(
  { name }: Skill,
  skills: readonly Skill[],
  cwd: string,
  signal: AbortSignal,
): Promise<string> {
  const result = await skillTool(skills, cwd).execute(
    { name },
    {
      id: name,
      signal,
      update: () => {},
      host: { call: () => Promise.reject(new Error("A skill calls nothing.")) },
      messages: [],
    },
  );
  const content = typeof result === "string" ? result : result.content;
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function sessionResource(session: SessionFileSummary): ServedResource {
  const title = sessionTitle(session);
  return {
    uri: `${SESSION_URI}${encodeURIComponent(session.id)}`,
    name: session.id,
    ...(title !== undefined && { title: redact(title) }),
    mimeType: PLAIN,
    read: () => readTranscript(session),
  };
}

/** The conversation as `gyre sessions show` has it, without what may be a key. */
async function readTranscript({ path }: SessionFileSummary): Promise<string> {
  const session = await openSession(path, { readOnly: true });
  try {
    const texts: string[] = [];
    for (const id of session.findBranch()) {
      const text = await session.read(id).then(entryText, (error: unknown) => errorMessage(error));
      if (text !== "") texts.push(redact(text));
    }
    const whole = texts.join("\n");
    if (whole.length <= MAX_TRANSCRIPT_CHARS) return whole;
    const left = whole.length - MAX_TRANSCRIPT_CHARS;
    return `[The first ${left} characters are left out.]\n${whole.slice(left)}`;
  } finally {
    await session.close();
  }
}
