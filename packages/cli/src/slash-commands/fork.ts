import { isLlmMessage } from "@gyre/agent";
import type { Session } from "@gyre/sessions";
import { type Choice, text } from "../conversation/command.ts";
import { promptText } from "../conversation/prompt-text.ts";
import { openStore } from "../harness/setup.ts";
import { asCode } from "../text/markdown-text.ts";
import { shortId, titleText } from "../text/session-title.ts";
import type { SlashCommand } from "./command-context.ts";

/** Entries that are read at a time. */
const READ_AT_ONCE = 64;
/** The newest prompts are offered: to an older one, /tree goes. */
const MAX_PROMPTS = 500;

interface Prompt {
  /** The entry before it. */
  parentId: number | null;
  text: string;
}

/** `/fork`: a copy of this session up to one of its prompts, and on from there. */
export const forkCommand: SlashCommand = {
  name: "fork",
  about: "go on in a copy of this session",
  faces: ["terminal", "screen reader"],
  async run(_rest, { choose, env, harness: { session }, setup: { cwd } }) {
    const prompts = session ? await listPrompts(session) : [];
    if (!session || prompts.length === 0) throw new Error("There is nothing to copy yet.");
    const prompt = await choose({
      title: "A copy up to which prompt?",
      choices: prompts.map(toChoice),
      filter: true,
    });
    if (!prompt) return undefined;
    const store = await openStore({ env });
    const copy = await store.fork(session.path, { cwd, entry: prompt.parentId });
    await copy.close();
    const origin = asCode(shortId(session.header.id));
    return {
      open: { session: copy.path },
      show: [text(`This is a copy of ${origin}, which stays as it was.`)],
      edit: prompt.text,
    };
  },
};

function toChoice(prompt: Prompt): Choice<Prompt> {
  return { value: prompt, label: titleText(prompt.text), search: prompt.text };
}

/** What the user asked on this branch, the newest first. */
async function listPrompts(session: Session): Promise<Prompt[]> {
  const messages = new Set(session.findIds("message"));
  const ids = session.findBranch().filter((id) => messages.has(id));
  const prompts: Prompt[] = [];
  while (ids.length > 0 && prompts.length < MAX_PROMPTS) {
    const entries = await Promise.all(ids.splice(-READ_AT_ONCE).map((id) => session.read(id)));
    for (const entry of entries.reverse()) {
      if (entry.type !== "message" || !isLlmMessage(entry.message)) continue;
      const { parentId, message } = entry;
      if (message.role === "user") prompts.push({ parentId, text: promptText(message) });
    }
  }
  return prompts.slice(0, MAX_PROMPTS);
}
