import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scriptedService } from "../packages/cli/src/testing/scripted-service.ts";
import { compile, readSnippets, root } from "./snippets.ts";

let folder: string;

beforeAll(async () => {
  await mkdir(join(root, ".tmp"), { recursive: true });
  folder = await mkdtemp(join(root, ".tmp", "durable-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the ten lines of durable.md", () => {
  it("D12 survive kill -9: the next start continues, and the one after it asks no model", async () => {
    const page = await readFile(join(root, "docs/durable.md"), "utf8");
    const [ten] = readSnippets(page, "docs/durable.md");
    if (!ten) throw new Error("The page has no program.");
    expect(ten.code.split("\n").filter((line) => line !== "")).toHaveLength(10);
    const readme = await readFile(join(root, "packages/durable/README.md"), "utf8");
    expect(readme).toContain(ten.code);
    const { problems, programs } = await compile([ten], join(folder, "program"));
    expect(problems).toEqual([]);
    const service = await scriptedService([{ silent: true }, { say: "Green tea." }]);
    const env = {
      ...process.env,
      ANTHROPIC_API_KEY: "sk-ant-for-the-pages-alone",
      ANTHROPIC_BASE_URL: service.url,
    };
    const start = (): ChildProcess =>
      spawn(process.execPath, [programs.get(ten) ?? ""], { cwd: folder, env });
    const print = async (child: ChildProcess): Promise<string> => {
      const read = async (stream: Readable | null): Promise<string> => (stream ? text(stream) : "");
      return (await Promise.all([read(child.stderr), read(child.stdout)])).join("");
    };
    try {
      const first = start();
      await service.asked(0);
      first.kill("SIGKILL");
      await once(first, "exit");
      expect(await print(start())).toBe("Green tea.\n");
      expect(await print(start())).toBe("Green tea.\n");
      expect(service.requests).toHaveLength(2);
      expect(service.requests[1]?.text).toBe(service.requests[0]?.text);
    } finally {
      await service.close();
    }
  });
});
