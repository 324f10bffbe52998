import { appendFile, open, truncate, writeFile } from "node:fs/promises";
import { afterAll, describe, expect, it } from "vitest";
import { pickSeed } from "../../../../tests/support/cases.ts";
import { createSession, openSession } from "../file/session-file.ts";
import { createRandom } from "../testing/churn.ts";
import { temporaryPaths } from "../testing/folder.ts";
import { SUMMARY_BYTES, summarize, summarizeFile } from "./summary.ts";
import { type SearchedTitles, searchTitles } from "./title-search.ts";

const newPath = temporaryPaths("titles", afterAll);
const MIB = 1024 * 1024;

const titleLine = (title: string): string => `{"id":9,"type":"title","title":"${title}"}\n`;
const messageLine = (chars: number): string =>
  `{"id":8,"type":"message","message":{"role":"user","content":"${"x".repeat(chars)}"}}\n`;
const HEADER = '{"type":"session","version":1,"id":"a","createdAt":1,"cwd":"/w"}\n';

/** A search of a whole file, with the bytes that it read. */
async function search(
  path: string,
  known?: SearchedTitles,
): Promise<SearchedTitles & { bytes: number }> {
  const file = await open(path, "r");
  let bytes = 0;
  const read = async (
    ...[buffer, offset, length, position]: [Buffer, number, number, number]
  ): Promise<{ bytesRead: number }> => {
    const done = await file.read(buffer, offset, length, position);
    bytes += done.bytesRead;
    return done;
  };
  const counted = new Proxy(file, {
    get: (target, name) => (name === "read" ? read : Reflect.get(target, name, target)),
  });
  try {
    return { ...(await searchTitles(counted, (await file.stat()).size, known)), bytes };
  } finally {
    await file.close();
  }
}

describe("a title between the ends of a long file", () => {
  it("is in the summary", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    const message = { role: "user", content: "x".repeat(2 * SUMMARY_BYTES), timestamp: 1 } as const;
    await session.append({ type: "message", message });
    await session.append({ type: "title", title: "Tea" });
    await session.append({ type: "message", message });
    await session.close();
    expect((await summarize(path)).title).toBe("Tea");
  });

  it("is the newest one, whichever process wrote it, and in whatever order its fields stand", async () => {
    const path = newPath();
    const late = '{"timestamp":5,"title":"Late","type":"title"}\r\n';
    const blank = titleLine(" ");
    const quoted = messageLine(10).replace("xxxxxxxxxx", String.raw`\"type\":\"title\"`);
    const nested = '{"type":"custom","kind":"x","data":{"type":"title","title":"no"}}\n';
    const damaged = titleLine("Lost").replace("}", "");
    const rest = blank + quoted + nested + damaged + messageLine(MIB);
    await writeFile(path, HEADER + titleLine("Early") + messageLine(MIB) + late + rest);
    expect((await summarize(path)).title).toBe("Late");
  });

  it("costs a later look only what was appended since", async () => {
    const path = newPath();
    await writeFile(path, HEADER + titleLine("Tea") + messageLine(8 * MIB));
    const first = await search(path);
    expect(first).toMatchObject({ title: "Tea" });
    expect(first.bytes).toBeGreaterThan(8 * MIB);
    await appendFile(path, messageLine(100_000));
    const second = await search(path, first);
    expect(second).toMatchObject({ title: "Tea" });
    expect(second.bytes).toBeLessThan(110_000);
    await appendFile(path, titleLine("Coffee") + messageLine(MIB));
    expect(await search(path, second)).toMatchObject({ title: "Coffee" });
  });

  it("is searched again in a file that was written again or became shorter", async () => {
    const path = newPath();
    await writeFile(path, HEADER + titleLine("Tea") + messageLine(MIB));
    const known = await search(path);
    await writeFile(path, HEADER + titleLine("Coffee") + messageLine(2 * MIB));
    expect(await search(path, known)).toMatchObject({ title: "Coffee" });
    await truncate(path, HEADER.length);
    expect(await search(path, known)).not.toHaveProperty("title");
  });

  it("is forgotten where it was the torn end that a repair cut off", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    const message = { role: "user", content: "x".repeat(2 * SUMMARY_BYTES), timestamp: 1 } as const;
    await session.append({ type: "message", message });
    await session.close();
    await appendFile(path, '{"id":2,"parentId":1,"type":"title","w":1,"timestamp":5,"title":"To');
    const torn = await summarizeFile(path);
    const repaired = await openSession(path);
    await repaired.append({ type: "message", message });
    await repaired.close();
    expect((await summarizeFile(path, torn.titles)).summary).not.toHaveProperty("title");
  });

  it("is the one that reading every line gives, for random files and looks", async () => {
    const seed = pickSeed();
    console.log(`titles of random files: GYRE_SEED=${seed}`);
    const random = createRandom(seed);
    for (let round = 0; round < 15; round++) {
      const path = newPath();
      await writeFile(path, HEADER);
      let known: SearchedTitles | undefined;
      let title: string | undefined;
      for (let step = 0; step < 25; step++) {
        if (random(4) === 0) {
          title = `T${step}${"y".repeat(random(10) === 0 ? random(15_000) : random(50))}`;
          await appendFile(path, titleLine(title));
        } else await appendFile(path, messageLine(random(3) === 0 ? random(400_000) : random(400)));
        if (random(3) > 0) continue;
        known = await search(path, random(5) === 0 ? undefined : known);
        expect([round, step, known.title]).toEqual([round, step, title]);
        expect((await summarize(path)).title).toBe(title);
      }
    }
  });
});
