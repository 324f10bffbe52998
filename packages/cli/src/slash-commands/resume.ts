import { errnoOf } from "@gyre/ai";
import type { SessionStore, SessionFileSummary } from "@gyre/sessions";
import type { Choice } from "@gyre/coding/internal/conversation/command";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";
import { openStore } from "../core/setup.ts";
import { agoText, sizeText } from "../text/session-text.ts";
import { titleText } from "@gyre/coding/internal/text/session-title";
import type { SlashCommand, SlashContext } from "./command-context.ts";

/** What a row of the list stands for: a session by its file, or the list of all folders. */
type Wanted = { path: string } | "all folders";

/** `/resume [id or words]`: goes on with another session. */
export const resumeCommand: SlashCommand = {
  name: "resume",
  aliases: ["sessions"],
  about: "go on with another session",
  hint: "[id or words]",
  views: ["terminal", "screen reader"],
  async run(rest, context) {
    const store = await openStore(context);
    const named = rest === "" ? undefined : await byId(store, rest);
    const path = named?.path ?? (await chooseStored(rest, store, toPlace(context)));
    if (path === undefined) return undefined;
    if (path === context.harness.session?.path) throw new Error("This session is open already.");
    return { open: { session: path } };
  },
};

/** The session that an id means. One that means several is an error; words mean none. */
async function byId(store: SessionStore, text: string): Promise<SessionFileSummary | undefined> {
  if (/\s/.test(text)) return undefined;
  try {
    return await store.find(text);
  } catch (error) {
    if (errnoOf(error) === "not_found") return undefined;
    throw error;
  }
}

/** Where a session is chosen. */
export interface ChoicePlace extends Pick<SlashContext, "choose"> {
  cwd: string;
  /** The file of the session that is open. */
  open?: string | undefined;
}

function toPlace({ choose, harness, setup }: SlashContext): ChoicePlace {
  return { choose, cwd: setup.cwd, open: harness.session?.path };
}

/**
 * Asks for a session of the folder, or of all folders, whose title or first prompt has these words. Gives its file;
 * undefined where the question is left. Throws an error for the user where there is none.
 */
export async function chooseStored(
  words: string,
  store: SessionStore,
  context: ChoicePlace,
): Promise<string | undefined> {
  const { cwd } = context;
  const here = matching(await listed(store, context, { cwd }), words);
  if (here.length > 0) {
    const [only, ...others] = here;
    if (words !== "" && only && others.length === 0) return only.path;
    const wanted = await ask("Sessions of this folder", here, context, true);
    if (wanted !== "all folders") return wanted?.path;
  }
  const everywhere = matching(await listed(store, context, {}), words);
  if (everywhere.length === 0) {
    throw new Error(
      words === ""
        ? "There is no other session yet."
        : `No session has "${words}" as its id, in its title or in its first prompt. /resume alone lists them.`,
    );
  }
  const wanted = await ask("Sessions of all folders", everywhere, context, false);
  return wanted === "all folders" ? undefined : wanted?.path;
}

/** Those in which something was asked, without the one that is open. */
async function listed(
  store: SessionStore,
  { open }: ChoicePlace,
  options: { cwd?: string },
): Promise<SessionFileSummary[]> {
  const all = await store.list(options);
  return all.filter(
    ({ firstPrompt, path, title }) => path !== open && (firstPrompt ?? title) !== undefined,
  );
}

function matching(sessions: readonly SessionFileSummary[], words: string): SessionFileSummary[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return sessions.filter(({ firstPrompt = "", title = "" }) => {
    const text = `${title} ${firstPrompt}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

function ask(
  title: string,
  sessions: readonly SessionFileSummary[],
  { choose }: ChoicePlace,
  isHere: boolean,
): Promise<Wanted | undefined> {
  const now = Date.now();
  const choices: Choice<Wanted>[] = sessions.map((session) => ({
    value: { path: session.path },
    label: titleText(sessionTitle(session) ?? ""),
    detail: [
      agoText(session.updatedAt, now),
      sizeText(session.bytes),
      ...(isHere ? [] : [session.cwd]),
    ].join(" · "),
    search: `${session.id} ${session.firstPrompt ?? ""}`,
  }));
  if (isHere) choices.push({ value: "all folders", label: "Sessions of all folders…" });
  return choose({ title, choices, filter: true });
}
