import { text } from "@gyre/coding/internal/conversation/command";
import { choosablePrompts } from "@gyre/coding/internal/file-history/prompts";
import { openStore } from "../core/setup.ts";
import { asCode } from "../text/markdown-text.ts";
import { shortId } from "@gyre/coding/internal/text/session-title";
import type { SlashCommand } from "./command-context.ts";

/** The newest prompts are offered: to an older one, /tree goes. */
const MAX_PROMPTS = 500;

/** `/fork`: a copy of this session up to one of its prompts, and on from there. */
export const forkCommand: SlashCommand = {
  name: "fork",
  about: "go on in a copy of this session",
  views: ["terminal", "screen reader"],
  async run(_rest, { choose, env, harness: { session }, setup: { cwd } }) {
    const choices = session ? await choosablePrompts(session, MAX_PROMPTS) : [];
    if (!session || choices.length === 0) throw new Error("There is nothing to copy yet.");
    const chosen = await choose({ title: "A copy up to which prompt?", choices, filter: true });
    if (!chosen) return undefined;
    const store = await openStore({ env });
    const copy = await store.fork(session.path ?? session.header.id, { cwd, entry: chosen.entry });
    await copy.close();
    const origin = asCode(shortId(session.header.id));
    return {
      open: { session: copy.path },
      show: [text(`This is a copy of ${origin}, which stays as it was.`)],
      edit: chosen.edit,
    };
  },
};
