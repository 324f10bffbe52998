import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createAcpHost } from "./host.ts";
import { textIo, type TextIo } from "../../testing/command-io.ts";
import { scriptedService, type ScriptedService } from "../../testing/scripted-service.ts";

let home: string;
let work: string;
let service: ScriptedService;

beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-host-"));
  work = join(home, "work");
  await mkdir(work);
  service = await scriptedService([{ say: "Hello." }]);
});

afterEach(async () => {
  await service.close();
  await rm(home, { recursive: true, force: true });
});

function io(more: Record<string, string> = {}): TextIo {
  const env = {
    HOME: home,
    PATH: process.env["PATH"] ?? "",
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_STATE_HOME: join(home, "state"),
    ...more,
  };
  return textIo({ env, cwd: home });
}

function withKey(): TextIo {
  return io({ ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: service.url });
}

test("a folder has an agent, a store and the models that there is a key for", async () => {
  const host = createAcpHost({ sandbox: "none" }, withKey());
  const folder = await host.folder(work);
  const models = await folder.models();
  expect(models.length).toBeGreaterThan(0);
  expect(models.every(({ value }) => value.startsWith("anthropic/"))).toBe(true);
  expect(new Set(models.map(({ name }) => name)).size).toBe(models.length);
  const session = await folder.store?.create({ cwd: work });
  const harness = await folder.open({ approvals: "deny", ...(session && { session }) });
  const { end } = await harness.prompt({ text: "Hi" });
  expect(end.stop).toBe("done");
  await harness.close();
  await session?.close();
  const stored = await (await host.store()).list({ cwd: work });
  expect(stored).toMatchObject([{ id: session?.header.id, firstPrompt: "Hi" }]);
});

test("--no-session keeps nothing", async () => {
  const host = createAcpHost({ "no-session": true, sandbox: "none" }, withKey());
  expect((await host.folder(work)).store).toBeUndefined();
});

test("without a key it says what to do", async () => {
  expect(await createAcpHost({}, io()).missingKey()).toContain("gyre login");
  expect(await createAcpHost({}, withKey()).missingKey()).toBeUndefined();
  const folder = await createAcpHost({ sandbox: "none" }, io()).folder(work);
  await expect(folder.open({ approvals: "deny" })).rejects.toThrow("gyre login");
});
