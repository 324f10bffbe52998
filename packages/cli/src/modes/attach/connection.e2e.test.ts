import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  FaultProxy,
  NO_FAULT,
  randomFault,
  seededRandom,
} from "../../../../protocol/src/testing/fault-proxy.ts";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { attachWorld } from "../../testing/attached-program.ts";
import type { Answer, Script } from "../../testing/scripted-service.ts";
import { openInTerminal, type TerminalRun } from "../../testing/terminal-program.ts";
import { ask, decide } from "../../testing/terminal-world.ts";
import { scriptedService } from "../../testing/scripted-service.ts";

// The built programs over connections that break, and with servers and clients that are killed.

const world = attachWorld();

const NEW = { args: ["--cwd", "."] };
const LOST = "connection lost";

const isIdle = (rows: readonly string[]): boolean =>
  !rows.some((row) => row.includes("Esc interrupts") || row.includes(LOST));

const WRITE = {
  call: "write",
  arguments: { path: "a.txt", content: "tea\n" },
  id: "c1",
} as const;

/** What was said and done, without what belongs to a moment: times, the editor and what is around it. */
function conversation(run: TerminalRun): string[] {
  const rows = [...run.scrollback(), ...run.screen()];
  const end = rows.findLastIndex((row) => /^─+$/.test(row));
  return rows
    .slice(0, end)
    .filter((row) => !/^── .* ──$|^gyre \d/.test(row))
    .join("\n")
    .replaceAll(/\n{2,}/g, "\n\n")
    .trim()
    .split("\n");
}

describe("a server that is killed", () => {
  it("in the middle of an answer: what was typed stays, and the run can be continued", async () => {
    const halted: Answer = {
      say: "I am at it, and there is more",
      deltaChars: 12,
      fault: { how: "silence", afterDeltas: 1 },
    };
    const server = await world.serve([halted, { say: "Here is all of it." }]);
    const run = await world.attach(server, NEW);
    ask(run, "Go.");
    await run.until("I am at it,");
    run.type("a thought for later");
    await run.until("a thought for later");
    server.run.kill("SIGKILL");
    await server.run.end;
    await run.until(/connection lost, trying again/);
    expect(run.screen().join("\n")).toContain("› a thought for later");
    await server.restart();
    await run.until("/retry continues it");
    await run.until(isIdle);
    expect(run.screen().join("\n")).toContain("› a thought for later");
    run.press("ctrl+c");
    ask(run, "/retry");
    await run.until("Here is all of it.");
    await run.until(isIdle);
    expect(run.screen().filter((row) => row === "› Go.")).toHaveLength(1);
  });

  it("while it asks: the question is there again, and what is approved runs once", async () => {
    const server = await world.serve([{ say: [WRITE] }, { say: "Written." }]);
    const run = await world.attach(server, NEW);
    ask(run, "Write it.");
    await run.until("Allow write a.txt?");
    server.run.kill("SIGKILL");
    await server.run.end;
    const again = await server.restart();
    await decide(run, "y", "Written.");
    await run.until(isIdle);
    expect(readFileSync(join(again.run.cwd, "a.txt"), "utf8")).toBe("tea\n");
    expect(run.screen().filter((row) => row.includes("write a.txt"))).toHaveLength(1);
  });

  it("while messages wait: they wait on, and nothing is sent twice", async () => {
    const server = await world.serve([{ silent: true }, { say: "All of it." }, { say: "Then." }]);
    const run = await world.attach(server, NEW);
    ask(run, "Go.");
    await run.until("Esc interrupts");
    await server.service.asked(0);
    run.type("And then?");
    run.press("alt+enter");
    await run.until("then: And then?");
    server.run.kill("SIGKILL");
    await server.run.end;
    await run.until(LOST);
    await server.restart();
    await run.until("/retry continues it");
    await run.until((rows) => isIdle(rows) && rows.some((row) => row.includes("And then?")));
    ask(run, "/retry");
    await run.until("Then.");
    await run.until(isIdle);
    const rows = conversation(run).filter((row) => !row.startsWith("!"));
    expect(rows.filter((row) => row !== "")).toEqual([
      "› Go.",
      "All of it.",
      "› And then?",
      "Then.",
    ]);
  });

  it("that ends by itself is waited for, and a prompt that was typed meanwhile is sent once", async () => {
    const server = await world.serve([{ say: "One." }, { say: "Two." }]);
    const run = await world.attach(server, NEW);
    ask(run, "First.");
    await run.until("One.");
    await run.until(isIdle);
    server.run.kill("SIGTERM");
    await server.run.end;
    await run.until(LOST);
    ask(run, "Second.");
    const again = await server.restart();
    await run.until("Two.");
    await run.until(isIdle);
    expect(conversation(run)).toEqual(["› First.", "", "One.", "", "› Second.", "", "Two."]);
    expect(again.service.requests).toHaveLength(2);
  });
});

describe("a terminal that is killed", () => {
  it("leaves the run as it is, and another one shows all of it", async () => {
    let finish = (): void => {};
    const until = new Promise<void>((settle) => (finish = settle));
    const say = "It goes on without a terminal, to its very end.";
    const server = await world.serve([{ say, deltaChars: 9, gate: { afterDeltas: 2, until } }]);
    const one = await world.attach(server, NEW);
    ask(one, "Go.");
    await one.until("It goes on");
    one.kill("SIGKILL");
    await one.end;
    finish();
    const other = await world.attach(server, { shows: /A new session/ });
    other.press("enter");
    await other.until("to its very end.");
    await other.until(isIdle);
    expect(conversation(other)).toEqual(["› Go.", "", say]);
  });
});

describe("a connection that breaks at any point", () => {
  const RUNS = countCases(1, 6, "GYRE_ATTACH_RUNS");
  const CUTS = countCases(5, 12, "GYRE_ATTACH_CUTS");
  const seed = pickSeed();

  const script = (): Script => {
    const text = Array.from({ length: 24 }, (_, at) => `${at + 1}. Line **${at + 1}**`).join("\n");
    return [
      {
        say: [{ text: "I look first." }, { call: "find", arguments: { pattern: "*.tea" } }],
        paceMs: 4,
      },
      { say: `${text}\n\nThat was the list.`, deltaChars: 6, paceMs: 3 },
      { say: [{ text: "Now I write." }, WRITE], paceMs: 4 },
      { say: "It is written, and that is all.", deltaChars: 3, paceMs: 4 },
    ];
  };

  /** The same steps, whatever the terminal is attached to. */
  async function play(run: TerminalRun): Promise<string[]> {
    ask(run, "List it.");
    await run.until("That was the list.");
    await run.until(isIdle);
    ask(run, "Write it.");
    await run.until("Allow write a.txt?");
    await decide(run, "y", "and that is all.");
    await run.until(isIdle);
    return conversation(run);
  }

  it(
    `shows what a local run shows, and nothing twice (GYRE_SEED=${seed})`,
    { tags: "long", timeout: 60_000 + RUNS * CUTS * 20_000 },
    async () => {
      const service = await scriptedService(script());
      world.cleanUps.push(() => service.close());
      const args = ["--mode", "ask", "--sandbox", "none"];
      const local = await openInTerminal(world.program, args, { service, rows: 20 });
      world.cleanUps.push(() => {
        local.kill();
        return local.end;
      });
      await local.until(/gyre \d/);
      const wanted = await play(local);
      const random = seededRandom(seed);
      for (let nth = 0; nth < RUNS; nth++) {
        const proxy = await FaultProxy.open();
        world.cleanUps.push(() => proxy.close());
        const host = `127.0.0.1:${proxy.port}`;
        const server = await world.serve(script(), { args: ["--allow-host", host] });
        proxy.to(server.port);
        let left = CUTS;
        let connections = 0;
        proxy.nextFault = () => {
          // The first one has to succeed: an address that never answers may be wrong.
          const first = 4_000 + Math.floor(4_000 * random());
          if (connections++ === 0) return { ...NO_FAULT, downBytes: first };
          return left-- > 0 ? randomFault(random) : NO_FAULT;
        };
        const run = await world.attach(server, { ...NEW, address: `ws://${host}` });
        expect(await play(run), `run ${nth}, GYRE_SEED=${seed}`).toEqual(wanted);
        expect(server.service.requests).toHaveLength(4);
        expect(existsSync(join(server.run.cwd, "a.txt"))).toBe(true);
        run.kill();
        server.run.kill("SIGKILL");
        await Promise.all([run.end, server.run.end]);
      }
    },
  );
});
