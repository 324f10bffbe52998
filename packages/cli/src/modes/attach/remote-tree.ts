import { isRecord } from "@gyre/ai";
import type { Payload } from "@gyre/protocol";
import type { Entry, EntryInfo, EntryType } from "@gyre/sessions";
import type { BrowsedSession } from "../../slash-commands/command-context.ts";

type Request = (name: string, payload: Payload) => Promise<Payload>;

/** The tree of a session on a server as it is now; entries are read when they are looked at. */
export async function readRemoteTree(request: Request): Promise<BrowsedSession> {
  const { entries: listed, leaf: at } = await request("tree", {});
  const entries = Array.isArray(listed) ? listed.filter(isInfo) : [];
  const leaf = typeof at === "number" ? at : null;
  const parents = new Map(entries.map(({ id, parentId }) => [id, parentId]));
  return {
    entries,
    leaf,
    read: async (id) => readEntry(await request("entry", { entry: id })),
    async append(body) {
      if (body.type !== "label") throw new Error("Only names can be given from here.");
      const { entry, label } = body;
      return readEntry(await request("label", { entry, label }));
    },
    findIds: (...types: readonly EntryType[]) =>
      entries.filter(({ type }) => types.includes(type)).map(({ id }) => id),
    findBranch(id = leaf) {
      const branch: number[] = [];
      const seen = new Set<number>();
      for (let next: number | null | undefined = id; typeof next === "number";) {
        if (seen.has(next)) break;
        seen.add(next);
        branch.push(next);
        next = parents.get(next);
      }
      return branch.reverse();
    },
  };
}

/** The server is trusted to send entries as its session file has them. */
function readEntry({ entry }: Payload): Entry {
  if (!isEntry(entry)) throw new Error("The server has sent no entry.");
  return entry;
}

function isEntry(value: unknown): value is Entry {
  return isRecord(value) && typeof value["id"] === "number" && typeof value["type"] === "string";
}

function isInfo(value: unknown): value is EntryInfo {
  return isEntry(value);
}
