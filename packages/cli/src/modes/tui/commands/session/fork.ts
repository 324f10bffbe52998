import { isLlmMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { openStore } from "../../../../harness/setup.ts";
import type { Choice, TerminalCommand } from "../../ui/ui.ts";
import { promptOf } from "../../../../text/ran-command.ts";
import { asCode, shortId, titleText } from "../session-words.ts";

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
export const forkCommand: TerminalCommand = {
  name: "fork",
  about: "go on in a copy of this session",
  async run(_rest, world) {
    const { session } = world.harness;
    const prompts = session ? await promptsOf(session) : [];
    if (!session || prompts.length === 0) throw new Error("There is nothing to copy yet.");
    const prompt = await world.ui.choose({
      title: "A copy up to which prompt?",
      choices: prompts.map(choiceOf),
      filter: true,
    });
    if (!prompt) return;
    const store = await openStore(world.io);
    const { cwd } = world.setup;
    const copy = await store.fork(session.path, { cwd, entry: prompt.parentId });
    await copy.close();
    await world.reopen({ session: copy.path });
    world.ui.say(`This is a copy of ${asCode(shortId(session.header.id))}, which stays as it was.`);
    world.ui.edit(prompt.text);
  },
};

function choiceOf(prompt: Prompt): Choice<Prompt> {
  return { value: prompt, label: titleText(prompt.text), search: prompt.text };
}

/** What the user asked on this branch, the newest first. */
async function promptsOf(session: Session): Promise<Prompt[]> {
  const messages = new Set(session.findIds("message"));
  const ids = session.findBranch().filter((id) => messages.has(id));
  const prompts: Prompt[] = [];
  while (ids.length > 0 && prompts.length < MAX_PROMPTS) {
    const entries = await Promise.all(ids.splice(-READ_AT_ONCE).map((id) => session.read(id)));
    for (const entry of entries.reverse()) {
      if (entry.type !== "message" || !isLlmMessage(entry.message)) continue;
      const { parentId, message } = entry;
      if (message.role === "user")
        prompts.push({ parentId, text: promptOf(textOf(message)).prompt });
    }
  }
  return prompts.slice(0, MAX_PROMPTS);
}
