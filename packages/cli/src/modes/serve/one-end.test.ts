import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readText, ServeWorld } from "../../testing/served-program.ts";
import { FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

/** An answer that breaks off once something of it was shown, and the whole one. */
const BROKEN = [
  {
    say: "The answer is",
    deltaChars: 4,
    fault: { how: "cut" as const, afterDeltas: 2 },
    usage: { input: 10, output: 2 },
  },
  { say: "Forty-two.", usage: { input: 12, output: 3 } },
];

describe("a prompt whose answer breaks off once", () => {
  let world: FrameWorld;

  beforeEach(async () => {
    world = await FrameWorld.open();
  });

  afterEach(() => world.close());

  it("has one start and one end on the wire, which counts all that was done", async () => {
    world.service.play(BROKEN);
    const server = world.start(runServe, { stdio: true });
    const id = await server.create();
    const end = await server.run("What is it?", id);
    expect(end.payload).toMatchObject({ stop: "done", turns: 2 });
    // What comes right after it is accepted: nothing goes on.
    world.service.play([{ say: "Yes." }]);
    expect((await server.run("Sure?", id)).payload).toMatchObject({ stop: "done", turns: 1 });
    const types = server.frames.map(({ type }) => type);
    expect(types.filter((type) => type === "agent_start")).toHaveLength(2);
    expect(types.filter((type) => type === "agent_end")).toHaveLength(2);
    expect(server.stderr).not.toContain('"level":"error"');
    await server.end();
  });
});

describe("RemoteAgent.prompt", () => {
  let world: ServeWorld;

  beforeAll(async () => {
    world = await ServeWorld.open();
  });
  afterAll(() => world.remove());
  beforeEach(() => world.begin());
  afterEach(() => world.end());

  it("settles at the end of the prompt, and the next one is accepted", async () => {
    world.service.play([...BROKEN, { say: "Yes." }]);
    const agent = await world.createAgent(await world.serve());
    const end = await agent.prompt("What is it?");
    expect(end.stop).toBe("done");
    expect(readText(end.finalMessage)).toBe("Forty-two.");
    expect(agent.state.isStreaming).toBe(false);
    await agent.prompt("Sure?");
    expect(readText(agent.state.messages.at(-1))).toBe("Yes.");
  });
});
