import { describe, expect, it } from "vitest";
import { pickSeed } from "../../../../tests/support/cases.ts";
import { type ListedSession, readLiveFirst } from "./live-first.ts";
import { cutPage, readListed } from "./session-list.ts";
import type { SessionInfo, SessionPage, SessionPageRequest } from "./session-host.ts";

const STATES = ["waiting", "running", "idle"] as const;

function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** All parts of a list, and how many each has. */
async function readAll(
  limit: number,
  read: (page: SessionPageRequest) => Promise<SessionPage>,
): Promise<string[]> {
  const ids: string[] = [];
  for (let after: string | undefined; ;) {
    const part = await read({ limit, ...(after !== undefined && { after }) });
    expect(part.sessions.length).toBeLessThanOrEqual(limit);
    ids.push(...part.sessions.map(({ id }) => id));
    if (part.next === undefined) return ids;
    after = part.next;
  }
}

describe("the order live", () => {
  it("has those first that wait, then those that run, then those that are open, each once", async () => {
    const seed = pickSeed();
    console.log(`the order live: GYRE_SEED=${seed}`);
    const random = createRandom(seed);
    for (let round = 0; round < 200; round++) {
      const all = Array.from({ length: random(30) }, (_, n) => ({
        id: `s${n}`,
        updatedAt: random(1_000),
      }));
      const live: ListedSession[] = all
        .filter(() => random(3) === 0)
        .map((info) => ({ ...info, isOpen: true, state: STATES[random(3)] ?? "idle" }));
      const rest = all.filter(({ id }) => !live.some((each) => each.id === id));
      const byTime = (a: SessionInfo, b: SessionInfo): number =>
        Number(b["updatedAt"]) - Number(a["updatedAt"]) || (a.id < b.id ? -1 : 1);
      const wanted = [
        ...STATES.flatMap((state) => live.filter((each) => each.state === state).sort(byTime)),
        ...rest.sort(byTime),
      ];
      const listed = [...all].sort(byTime);
      const read = (page: SessionPageRequest): Promise<SessionPage> =>
        readLiveFirst(page, live, (part) => Promise.resolve(cutPage(listed, part)));
      expect(await readAll(1 + random(8), read)).toEqual(wanted.map(({ id }) => id));
    }
  });

  it("refuses a cursor of another order", async () => {
    const read = readLiveFirst({ limit: 1, after: "s_1" }, [], async () => ({ sessions: [] }));
    await expect(read).rejects.toMatchObject({ code: "invalid_request" });
  });
});

it("a list of all folders leaves out what is not served, and reads a bounded number of parts", async () => {
  const all = Array.from({ length: 100 }, (_, n) => ({ id: `s${n}`, isServed: n % 7 === 0 }));
  let reads = 0;
  const read = (page: SessionPageRequest): Promise<SessionPage> => {
    reads++;
    return Promise.resolve(cutPage(all, page));
  };
  const isServed = (info: SessionInfo): boolean => info["isServed"] === true;
  const ids = await readAll(4, (page) => readListed(page, read, isServed));
  expect(ids).toEqual(all.filter(isServed).map(({ id }) => id));
  reads = 0;
  expect(await readListed({ limit: 1 }, read, () => false)).toEqual({ sessions: [], next: "s19" });
  expect(reads).toBe(20);
});
