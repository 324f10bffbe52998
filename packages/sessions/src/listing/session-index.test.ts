import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { createFilter, formatTimeKey } from "../format/page.ts";
import { SESSION_SUFFIX, summarize } from "../format/summary.ts";
import type { SessionFileSummary } from "../format/types.ts";
import { SessionStore } from "../store.ts";
import { actRandomly, createRandom, type Random } from "../testing/churn.ts";
import { INDEX_FOLDER } from "../file/written-names.ts";
import { SessionIndex } from "./session-index.ts";

const CWD = "/home/ada/tea";
/** The index is written for folders that have so many. */
const MANY = 70;

let home = "";
let root = "";
beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-index-"));
  root = join(home, "sessions");
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function readFolders(): Promise<string[]> {
  return (await readdir(root)).filter((name) => name !== INDEX_FOLDER);
}

/** What has changed is taken for old: the next change has to come after the clock of the file system has moved. */
function createHasty(): SessionIndex {
  return new SessionIndex(root, readFolders, () => Date.now() + 60_000);
}

/** Settles when what is written has another time than what was written before. */
async function nextTick(): Promise<void> {
  const probe = join(home, "probe");
  const write = async (): Promise<number> => {
    await writeFile(probe, "x");
    return (await stat(probe)).mtimeMs;
  };
  const before = await write();
  while ((await write()) <= before);
}

/** The list, made of every file. */
async function scan(): Promise<SessionFileSummary[]> {
  const summaries: SessionFileSummary[] = [];
  for (const folder of await readFolders()) {
    for (const name of await readdir(join(root, folder))) {
      if (name.endsWith(SESSION_SUFFIX)) summaries.push(await summarize(join(root, folder, name)));
    }
  }
  const formatKey = ({ path, updatedAt }: SessionFileSummary): string =>
    `${formatTimeKey(updatedAt)}/${basename(path, SESSION_SUFFIX)}/${basename(dirname(path))}`;
  return summaries.sort((a, b) => (formatKey(a) < formatKey(b) ? 1 : -1));
}

async function fill(count: number): Promise<SessionStore> {
  const store = new SessionStore(root);
  for (let i = 0; i < count; i++) {
    const session = await store.create({ cwd: CWD, id: `s${i}` });
    const content = `Which tea ${i}?`;
    await session.append({ type: "message", message: { role: "user", content, timestamp: i } });
    await session.close();
  }
  return store;
}

async function indexFile(): Promise<string> {
  const names = await readdir(join(root, INDEX_FOLDER));
  const name = names.find((each) => each.endsWith(".json")) ?? "";
  return join(root, INDEX_FOLDER, name);
}

/** All pages of a list, one after the other. */
async function readPages(
  index: SessionIndex,
  limit: number,
  options: { query?: string; archived?: boolean },
): Promise<SessionFileSummary[]> {
  const all: SessionFileSummary[] = [];
  for (let after: string | undefined; ;) {
    const page = await index.listPage(undefined, {
      ...{ ...options, limit, order: "updated" as const },
      ...(after !== undefined && { after }),
    });
    all.push(...page.sessions);
    if (page.next === undefined) return all;
    after = page.next;
  }
}

/** Every index gives what the files say. */
async function expectSame(indexes: readonly SessionIndex[], random: Random): Promise<void> {
  const scanned = await scan();
  for (const index of indexes) {
    expect(await index.list(undefined, {})).toEqual(scanned);
    for (const options of [{ query: "GREEN über" }, { archived: false }, { archived: true }]) {
      const wanted = scanned.filter((each) => createFilter(options)(each));
      expect(await readPages(index, 1 + random(20), options)).toEqual(wanted);
    }
  }
}

describe("a list by the index", () => {
  it(
    "is a full scan, whatever several stores do to the folder",
    { tags: "long", timeout: 1_200_000 },
    async () => {
      const seed = pickSeed();
      const steps = countCases(60, 1_000, "GYRE_CASES");
      console.log(`a list by the index: GYRE_SEED=${seed} GYRE_CASES=${steps}`);
      const random = createRandom(seed);
      const first = await fill(MANY);
      const stores = [first, new SessionStore(root), new SessionStore(root)];
      const hasty = createHasty();
      const paged = createHasty();
      for (let step = 0; step < steps; step++) {
        const one = actRandomly(stores[step % 3] ?? first, random);
        await Promise.all(step % 5 === 0 ? [one, actRandomly(first, random)] : [one]);
        if (random(3) > 0) continue;
        await nextTick();
        // Besides those that know much, one that begins with what another has written down.
        await expectSame([hasty, createHasty()], random);
        // These two compare only what writers have noted.
        for (const index of [paged, createHasty()]) {
          expect(await readPages(index, 1 + random(20), {})).toEqual(await scan());
        }
        expect(await stores[random(3)]?.list()).toEqual(await scan());
        await nextTick();
      }
    },
  );

  it("writes what it has read beside the sessions, for its owner alone", async () => {
    const store = await fill(MANY);
    await createHasty().list(undefined, {});
    const file = await indexFile();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(file, "utf8")).toContain("Which tea 3?");
    expect(await store.list()).toHaveLength(MANY);
    expect((await readdir(join(root, INDEX_FOLDER))).length).toBe(1);
  });

  it("is made again where the index is damaged, absent, or not to be written", async () => {
    await fill(MANY);
    const whole = await createHasty().list(undefined, {});
    const file = await indexFile();
    const bytes = await readFile(file);
    const wrong = Buffer.from(bytes);
    wrong[wrong.length - 40] = 0x41;
    const damages: (() => Promise<void>)[] = [
      () => rm(file),
      () => truncate(file, Math.floor(bytes.length / 2)),
      () => truncate(file, 0),
      () => writeFile(file, wrong),
      () => writeFile(file, "[]"),
      () => writeFile(file, "gyre session index 1 0\nnull"),
      async () => {
        await rm(file);
        await mkdir(file);
      },
    ];
    for (const damage of damages) {
      await damage();
      expect(await createHasty().list(undefined, {})).toEqual(whole);
      await rm(file, { recursive: true, force: true });
      await writeFile(file, bytes);
    }
    await rm(join(root, INDEX_FOLDER), { recursive: true });
    await writeFile(join(root, INDEX_FOLDER), "in the way");
    const index = new SessionIndex(root, readFolders, () => Date.now() + 60_000);
    expect(await index.list(undefined, {})).toEqual(whole);
  });

  it("shows what was changed without a lock: at once on the page, by and by elsewhere", async () => {
    const store = await fill(3);
    const index = createHasty();
    await index.list(undefined, {});
    await nextTick();
    const { path } = await store.find("s0");
    const line = '{"id":2,"parentId":1,"type":"title","w":1,"timestamp":5,"title":"Odd"}\n';
    await appendFile(path, line);
    const page = await index.listPage(undefined, { limit: 3, order: "created" });
    expect(page.sessions.find(({ id }) => id === "s0")).toMatchObject({ title: "Odd" });
    await nextTick();
    await appendFile(path, line.replace("Odd", "Odder"));
    for (let looks = 0; looks < 3; looks++) await index.list(undefined, {});
    expect((await index.list(undefined, {})).find(({ id }) => id === "s0")?.title).toBe("Odder");
  });

  it("has a page of what writers have noted; what was changed without a lock is in a whole list", async () => {
    const store = await fill(MANY);
    // The second one writes down up to where it knows what was written.
    for (let times = 0; times < 3; times++) {
      await nextTick();
      await createHasty().list(undefined, {});
    }
    const index = createHasty();
    const titles = async (): Promise<(string | undefined)[]> => {
      const page = await index.listPage(undefined, { limit: 3, order: "updated" });
      return page.sessions.map(({ title }) => title);
    };
    expect(await titles()).toEqual([undefined, undefined, undefined]);
    await nextTick();
    const odd = (await store.find("s0")).path;
    const line = { id: 2, parentId: 1, type: "title", w: 1, timestamp: 9e14, title: "Odd" };
    await appendFile(odd, `${JSON.stringify(line)}\n`);
    const session = await store.open("s1");
    await session.append({ type: "title", title: "Noted" });
    await session.close();
    expect((await titles())[0]).toBe("Noted");
    await nextTick();
    const [first, second] = await index.list(undefined, {});
    expect([first?.title, second?.title]).toEqual(["Odd", "Noted"]);
    expect((await titles()).slice(0, 2)).toEqual(["Odd", "Noted"]);
  });

  it("goes on where one session cannot be read", async () => {
    const store = await fill(2);
    const { path } = await store.find("s1");
    await rm(path);
    await mkdir(path);
    expect((await store.list()).map(({ id }) => id)).toEqual(["s0"]);
    await rm(path, { recursive: true });
    await writeFile(path, "");
    await chmod(path, 0o000);
    expect((await store.list()).map(({ id }) => id).sort()).toEqual(["s0", "s1"]);
  });
});

describe("a program that is killed at any moment", { tags: "long" }, () => {
  let tools: string;
  let program: string;
  beforeAll(async () => {
    tools = await mkdtemp(join(await realpath(tmpdir()), "gyre-churn-"));
    const bundle = await rolldown({
      input: fileURLToPath(new URL("../testing/churn-program.ts", import.meta.url)),
      platform: "node",
      resolve: { conditionNames: ["@gyre/source", "import"] },
    });
    await bundle.write({ dir: tools, entryFileNames: "churn.mjs" });
    await bundle.close();
    program = join(tools, "churn.mjs");
  });
  afterAll(() => rm(tools, { recursive: true, force: true }));

  it("leaves an index that lists what a full scan lists", async () => {
    const seed = pickSeed();
    const rounds = countCases(3, 40, "GYRE_CASES");
    console.log(`an index after a kill: GYRE_SEED=${seed} GYRE_CASES=${rounds}`);
    const random = createRandom(seed);
    await fill(MANY);
    for (let round = 0; round < rounds; round++) {
      const children = [0, 1].map(() =>
        spawn(process.execPath, [program, root, String(random(1_000_000))]),
      );
      await Promise.all(
        children.map(async (child) => {
          const ended = once(child, "close");
          let left = 1 + random(12);
          for await (const line of createInterface({ input: child.stdout })) {
            expect(line).toBe("ok");
            if (--left === 0) child.kill("SIGKILL");
          }
          await ended;
        }),
      );
      await nextTick();
      expect(await readPages(createHasty(), 1 + random(20), {})).toEqual(await scan());
      await expectSame([createHasty()], random);
      expect(await new SessionStore(root).list()).toEqual(await scan());
      await nextTick();
    }
  });
});
