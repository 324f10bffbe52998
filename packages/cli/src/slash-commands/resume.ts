import { errnoOf } from "@gyre/ai";
import type { SessionStore, SessionFileSummary } from "@gyre/sessions";
import type { Choice } from "@gyre/coding/internal/conversation/command";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";
import { openStore } from "../core/setup.ts";
import { agoText, sizeText } from "../text/session-text.ts";
import { titleText } from "@gyre/coding/internal/text/session-title";
import type { SlashCommand, SlashContext } from "./command-context.ts";

/** Sessions that are shown of those with some words in a message, and pages that are read for them. */
const MAX_FOUND = 50;
const MAX_SEARCH_PAGES = 8;

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
 * Asks for a session of the folder, or of all folders, whose title or first prompt has these words, or else of which
 * a message has them as they stand. Gives its file; undefined where the question is left. Throws an error for the user
 * where there is none.
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
  if (everywhere.length === 0 && words === "") throw new Error("There is no other session yet.");
  const found = everywhere.length > 0 ? everywhere : await searchMessages(store, context, words);
  if (found.length === 0) {
    throw new Error(
      `No session has "${words}" as its id, in its title or in its first prompt, and no message of the newest ones has it. /resume alone lists them.`,
    );
  }
  const wanted = await ask("Sessions of all folders", found, context, false);
  return wanted === "all folders" ? undefined : wanted?.path;
}

/** What a row of the list shows. */
type Shown = SessionFileSummary & { excerpt?: string };

/** Those that have the words in a message, as far as that is read within a moment: there is no index of messages. */
async function searchMessages(
  store: SessionStore,
  { open }: ChoicePlace,
  text: string,
): Promise<Shown[]> {
  const found: Shown[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < MAX_SEARCH_PAGES && found.length < MAX_FOUND; pages++) {
    const limit = MAX_FOUND - found.length;
    const request = { text, limit, archived: false, ...(after !== undefined && { after }) };
    const { matches, next } = await store.search(request);
    for (const { excerpt, session } of matches) {
      const { path } = session;
      if (path !== undefined && path !== open) found.push({ ...session, path, excerpt });
    }
    if (next === undefined) break;
    after = next;
  }
  return found;
}

/** Those in which something was asked, without the one that is open and those that were put away. */
async function listed(
  store: SessionStore,
  { open }: ChoicePlace,
  options: { cwd?: string },
): Promise<SessionFileSummary[]> {
  const all = await store.list({ ...options, archived: false });
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
  sessions: readonly Shown[],
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
      ...(session.headless ? ["of -p"] : []),
      ...(isHere ? [] : [session.cwd]),
      ...(session.excerpt === undefined ? [] : [titleText(session.excerpt)]),
    ].join(" · "),
    search: `${session.id} ${session.firstPrompt ?? ""}`,
  }));
  if (isHere) choices.push({ value: "all folders", label: "Sessions of all folders…" });
  return choose({ title, choices, filter: true });
}
