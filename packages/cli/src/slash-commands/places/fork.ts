import {
  type CommandContext,
  type CommandResult,
  text,
} from "@gyre/coding/internal/conversation/command";
import { choosablePrompts } from "@gyre/coding/internal/file-history/prompts";
import { forkSession } from "@gyre/coding/internal/file-history/rewind/fork-history";
import { shortId } from "@gyre/coding/internal/text/session-title";
import type { Environment } from "../../core/io.ts";
import { openStore } from "../../core/setup.ts";
import { asCode } from "../../text/markdown-text.ts";
import { bringFiles, type PlaceContext } from "./bring-files.ts";

/** The newest prompts are offered: to an older one, /tree goes. */
const MAX_PROMPTS = 500;

/** `/fork`: a copy of this session up to one of its prompts, and on from there. */
export async function goOnInCopy(
  context: CommandContext & PlaceContext & { env: Environment; setup: { cwd: string } },
): Promise<CommandResult | undefined> {
  const { choose, env, harness, setup } = context;
  const { session } = harness;
  const choices = session ? await choosablePrompts(session, MAX_PROMPTS) : [];
  if (!session || choices.length === 0) throw new Error("There is nothing to copy yet.");
  const chosen = await choose({ title: "A copy up to which prompt?", choices, filter: true });
  if (!chosen) return undefined;
  const { before, edit, entry } = chosen;
  const gone = await bringFiles(context, {
    title: "Files are not as they were at this place",
    to: { before },
    allowFilesOnly: false,
    done: "brought to this place",
  });
  if (!gone) return undefined;
  const store = await openStore({ env });
  const options = { cwd: setup.cwd, entry, env, withRewind: gone.files > 0 };
  const copy = await forkSession(store, session.path ?? session.header.id, options);
  await copy.close();
  const origin = asCode(shortId(session.header.id));
  return {
    open: { session: copy.header.id },
    show: [text(`This is a copy of ${origin}, which stays as it was.`), ...gone.show],
    edit,
  };
}
