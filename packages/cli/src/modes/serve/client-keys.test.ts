import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { createRemoteClient } from "@gyre/protocol";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ServeWorld } from "../../testing/served-program.ts";

const KEY = "sk-a-key-of-the-client-0123456789";

let world: ServeWorld;

beforeAll(async () => {
  world = await ServeWorld.open();
});
afterAll(() => world.remove());
beforeEach(() => world.begin());
afterEach(() => world.end());

/** All that a program left in a folder. */
function readFiles(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), "utf8"));
  return texts.join("\n");
}

it("--client-keys: getApiKey of an agent reaches the service, and no log and no file", async () => {
  world.service.play([{ say: "With your key." }, { status: 401, message: `Wrong key: ${KEY}` }]);
  const server = await world.serve([
    "--client-keys",
    "--verbose",
    "wire.jsonl",
    "--log",
    "calls.log",
  ]);
  const { url, token } = server;
  const protocol = createRemoteClient({ url, token, clientKeys: true });
  world.closes(protocol);
  const model = await world.findModel(server);
  const agent = new Agent({ protocol, model, getApiKey: () => KEY });
  expect((await agent.prompt("Hi")).text).toBe("With your key.");
  expect(world.service.requests[0]?.headers["x-api-key"]).toBe(KEY);
  const failed = await agent.prompt("Again");
  expect([failed.stop, agent.state.error]).toEqual([
    "error",
    expect.stringContaining("[redacted]"),
  ]);
  server.run.kill("SIGTERM");
  const ended = await server.run.end;
  const seen = [ended.stdout, ended.stderr, readFiles(ended.home), readFiles(server.run.cwd)].join(
    "\n",
  );
  expect(seen).toContain("With your key.");
  expect(seen).not.toContain(KEY);
});

it("without it a key is refused, and the answer says what to do", async () => {
  const server = await world.serve();
  const { url, token } = server;
  const protocol = createRemoteClient({ url, token, clientKeys: true });
  world.closes(protocol);
  const agent = new Agent({ protocol, model: await world.findModel(server), getApiKey: () => KEY });
  const { stop } = await agent.prompt("Hi");
  expect([stop, agent.state.error]).toEqual([
    "error",
    expect.stringContaining("gyre serve --client-keys"),
  ]);
  expect(world.service.requests).toEqual([]);
});
