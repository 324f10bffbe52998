import type { AgentMessage } from "@gyre/agent";
import type { EntryBody, Session } from "@gyre/sessions";

/** What was added to a session. */
export interface Grafted {
  /** The entries of the copy, and those that they are now. */
  ids: ReadonlyMap<number, number>;
  /** The last of them; undefined: there was nothing to add. */
  leaf: number | undefined;
  entries: readonly EntryBody[];
}

/**
 * Adds what was said in a copy of a session as a branch of it. `from`: where the copy ended when it was made; `at`:
 * the same place in the session; `shared`: messages of the copy up to there, and those of the session. The session
 * then ends there: the caller goes back to where it was.
 */
export async function graftBranch(
  copy: Session,
  from: number | null,
  into: Session,
  at: number | null,
  shared: ReadonlyMap<number, number>,
): Promise<Grafted> {
  const branch = copy.findBranch();
  const news = branch.slice(from === null ? 0 : branch.indexOf(from) + 1);
  const ids = new Map(shared);
  const entries: EntryBody[] = [];
  let leaf: number | undefined;
  await into.branch(at);
  for (const id of news) {
    const body = toBody(await copy.read(id), ids);
    if (!body) continue;
    const { id: added } = await into.append(body);
    ids.set(id, added);
    entries.push(body);
    if (body.type === "message") leaf = added;
  }
  return { ids, leaf, entries };
}

/** What an entry is in another session; undefined: it says nothing there, as settings of the copy. */
function toBody(entry: EntryBody, ids: ReadonlyMap<number, number>): EntryBody | undefined {
  switch (entry.type) {
    case "message":
      return { type: "message", message: entry.message };
    case "custom":
      return { type: "custom", kind: entry.kind, data: entry.data };
    case "compaction": {
      const { message, shortened, facts, first, until, entries } = entry;
      const mapped = mapFrom(ids, first);
      // What it stands for is not there: the messages are sent as they are.
      if (mapped === undefined) return undefined;
      return {
        type: "compaction",
        first: mapped,
        until: until === null ? null : (mapFrom(ids, until) ?? null),
        ...(message && { message }),
        ...(shortened && { shortened }),
        ...(facts && { facts }),
        ...(entries && { entries: entries.flatMap((id) => ids.get(id) ?? []) }),
      };
    }
    default:
      return undefined;
  }
}

/** What an entry is now, or the first one behind it that is there. */
function mapFrom(ids: ReadonlyMap<number, number>, id: number): number | undefined {
  const old = [...ids.keys()].sort((a, b) => a - b).find((each) => each >= id);
  return old === undefined ? undefined : ids.get(old);
}

/** The messages of what was added. */
export function listMessages({ entries }: Pick<Grafted, "entries">): AgentMessage[] {
  return entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
}
