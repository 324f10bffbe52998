import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "@gyre/ai";
import type { Payload } from "@gyre/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EXIT } from "../../core/exit-codes.ts";
import { runServe } from "../serve/serve.ts";
import { runRpc } from "./rpc.ts";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";

let world: FrameWorld;

beforeEach(async () => {
  world = await FrameWorld.open();
  await writeFile(join(world.cwd, "tea.txt"), "green\n");
});
afterEach(() => world.close());

interface Effect {
  id: number;
  path: string;
}

/** The call that a run waits for, and what it did. */
function findPending(payload: Payload): { id: string; fingerprint: unknown; effects: Effect[] } {
  const { pending } = payload;
  const call: unknown = Array.isArray(pending) ? pending[0] : undefined;
  if (!isRecord(call) || !isRecord(call["toolCall"]) || !isRecord(call["access"])) {
    throw new Error(`Nothing waits: ${JSON.stringify(payload)}`);
  }
  const { question } = call["access"];
  const report = isRecord(question) && isRecord(question["effects"]) ? question["effects"] : {};
  return {
    id: String(call["toolCall"]["id"]),
    fingerprint: call["fingerprint"],
    effects: Array.isArray(report["effects"]) ? report["effects"] : [],
  };
}

async function decide(
  driver: FrameDriver,
  session: string,
  id: string,
  decision: Payload,
): Promise<Payload> {
  const from = driver.frames.length;
  const answer = await driver.ask("approve", { decisions: { [id]: decision } }, session);
  if (answer.type !== "ack") return answer.payload;
  return (await driver.next(({ type }) => type === "agent_end", from)).payload;
}

const COMMAND = "echo black >> tea.txt; echo new > cup";
const read = (name: string): Promise<string> => readFile(join(world.cwd, name), "utf8");

describe.each([
  ["gyre rpc", runRpc, {}],
  ["gyre serve --stdio", runServe, { stdio: true }],
])("%s", { tags: ["bubblewrap"] }, (_name, program, values) => {
  async function suspend(): Promise<{
    driver: FrameDriver;
    session: string;
    call: ReturnType<typeof findPending>;
  }> {
    world.service.play([
      { say: [{ call: "shell", arguments: { command: COMMAND }, id: "c1" }] },
      { say: "Done." },
    ]);
    const driver = world.start(program, { ...values, sandbox: "auto", mode: "ask" });
    const session = await driver.create();
    const { payload } = await driver.run("Go.", session);
    expect(payload["stop"]).toBe("suspended");
    return { driver, session, call: findPending(payload) };
  }

  async function end(driver: FrameDriver): Promise<void> {
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  }

  it("sends what a command did in a layer with the question, and keeps it when it is approved", async () => {
    const { driver, session, call } = await suspend();
    expect(call.effects).toMatchObject([
      { path: "cup", kind: "create", texts: { before: "", after: "new\n" } },
      { path: "tea.txt", kind: "modify" },
    ]);
    expect(await readdir(world.cwd)).toEqual(["tea.txt"]);
    const { fingerprint } = call;
    const done = await decide(driver, session, call.id, { type: "approve", fingerprint });
    expect(done["stop"]).toBe("done");
    expect([await read("tea.txt"), await read("cup")]).toEqual(["green\nblack\n", "new\n"]);
    await end(driver);
  });

  it("keeps those that the decision names", async () => {
    const { driver, session, call } = await suspend();
    const keep = call.effects.filter(({ path }) => path === "cup").map(({ id }) => id);
    await decide(driver, session, call.id, { type: "approve", keep });
    expect([await read("tea.txt"), await read("cup")]).toEqual(["green\n", "new\n"]);
    await end(driver);
  });

  it("discards them where it is denied, and runs it directly where the decision says so", async () => {
    const { driver, session, call } = await suspend();
    await decide(driver, session, call.id, { type: "deny" });
    expect(await readdir(world.cwd)).toEqual(["tea.txt"]);
    await end(driver);
    const second = await suspend();
    await decide(second.driver, second.session, second.call.id, { type: "approve", direct: true });
    expect([await read("tea.txt"), await read("cup")]).toEqual(["green\nblack\n", "new\n"]);
    await end(second.driver);
  });

  it("refuses a decision that is not valid", async () => {
    const { driver, session, call } = await suspend();
    const refused = await decide(driver, session, call.id, { type: "approve", keep: ["cup"] });
    expect(refused).toMatchObject({ code: "invalid_request" });
    expect(String(refused["message"])).toContain('"keep" is a list of numbers');
    expect(await readdir(world.cwd)).toEqual(["tea.txt"]);
    await end(driver);
  });

  it("asks again in the next process, which does not have what it did", async () => {
    const { driver, session, call } = await suspend();
    await end(driver);
    world.service.play([{ say: "Done." }]);
    const next = world.start(program, { ...values, sandbox: "auto", mode: "ask" });
    await next.hello();
    await next.attach(session);
    const { fingerprint } = call;
    const again = await decide(next, session, call.id, { type: "approve", fingerprint });
    expect(again["stop"]).toBe("suspended");
    expect(findPending(again).effects).toHaveLength(2);
    expect(await readdir(world.cwd)).toEqual(["tea.txt"]);
    await decide(next, session, call.id, { type: "approve" });
    expect(await read("cup")).toBe("new\n");
    await end(next);
  });
});
