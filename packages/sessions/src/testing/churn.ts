import { SessionError } from "../format/types.ts";
import type { SessionStore } from "../store.ts";

/** Large enough that a summary no longer sees what stood before. */
const LONG_TEXT_CHARS = 80_000;
const FOLDERS = ["/home/ada/tea", "/home/ada/coffee"];
const WORDS = ["green", "Black", "oolong", "Überraschung", "pot"];
/** What other processes may be the reason for. */
const OTHERS: ReadonlySet<string> = new Set(["locked", "not_found", "exists", "ambiguous"]);

export type Random = (below: number) => number;

/** The same numbers for the same seed. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Does something to a session of a store; nothing where another process has it. */
export async function actRandomly(store: SessionStore, random: Random): Promise<void> {
  try {
    await act(store, random);
  } catch (error) {
    if (!(error instanceof SessionError) || !OTHERS.has(error.code)) throw error;
  }
}

async function act(store: SessionStore, random: Random): Promise<void> {
  const sessions = await store.list();
  const chosen = sessions[random(sessions.length)];
  const kind = random(12);
  if (!chosen || kind < 2) {
    const session = await store.create({ cwd: FOLDERS[random(2)] ?? "" });
    await session.close();
    return;
  }
  if (kind === 2) return store.remove(chosen.id);
  const session = await (kind === 3 ? store.fork(chosen.id) : store.open(chosen.id));
  try {
    const text = `${WORDS[random(5)]} ${WORDS[random(5)]}`;
    if (kind < 7) {
      const content = random(10) === 0 ? text.padEnd(LONG_TEXT_CHARS, " x") : text;
      await session.append({ type: "message", message: { role: "user", content, timestamp: 1 } });
    } else if (kind < 9) await session.append({ type: "title", title: text });
    else await session.append({ type: "archive", archived: random(3) > 0 });
  } finally {
    await session.close();
  }
}
