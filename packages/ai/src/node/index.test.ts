import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { complete } from "../client/client.ts";
import type { AssistantMessage, Message } from "../messages/messages.ts";
import { scriptedModel, scriptedModelInfo as model } from "../testing/scripted.ts";
import { recordToFile, replayFile } from "./index.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "cassette-"));
});
afterEach(() => rm(folder, { recursive: true }));

const messages: Message[] = [{ role: "user", content: "Go", timestamp: 0 }];

async function recordOne(path: string, text: string): Promise<AssistantMessage> {
  return complete(recordToFile(scriptedModel([text]), path), model, { messages });
}

it("makes the folders and the file, adds to it, and replays it", async () => {
  const path = join(folder, "deep", "er", "run.jsonl");
  const recorded = [await recordOne(path, "one"), await recordOne(path, "two")];
  const client = replayFile(path);
  const replayed = [
    await complete(client, model, { messages }),
    await complete(client, model, { messages }),
  ];
  expect(replayed).toEqual(recorded);
  client.assertComplete();
  expect((await readFile(path, "utf8")).split("\n")).toHaveLength(5);
});

it("the file is its owner's alone, where the system knows such a thing", async () => {
  const path = join(folder, "run.jsonl");
  await recordOne(path, "one");
  const expected = process.platform === "win32" ? 0o666 : 0o600;
  expect((await stat(path)).mode & 0o777).toBe(expected);
});

it("throws at once where it cannot write or read", async () => {
  const file = join(folder, "file");
  await writeFile(file, "not a cassette");
  expect(() => recordToFile(scriptedModel([]), join(file, "run.jsonl"))).toThrow(/EEXIST|ENOTDIR/);
  expect(() => replayFile(join(folder, "missing"))).toThrow("ENOENT");
  expect(() => replayFile(file)).toThrow("Line 1 of the cassette is not JSON");
});
