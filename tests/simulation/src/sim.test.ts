import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { VirtualClock } from "./world/clock.ts";
import { FAULTS } from "./fault-list.ts";
import { Random } from "./world/random.ts";
import { runSeed } from "./seed.ts";

describe("the simulation", () => {
  it("the same seed gives the same event log, byte for byte", async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const first = await runSeed(seed, true);
      const second = await runSeed(seed, true);
      expect(first.lines.length).toBeGreaterThan(10);
      expect(second.lines.join("\n")).toBe(first.lines.join("\n"));
    }
  });

  it("a seed does not depend on those that ran before it", async () => {
    const alone = await runSeed(7, true);
    await runSeed(8);
    await runSeed(3);
    expect((await runSeed(7, true)).lines).toEqual(alone.lines);
  });

  it("holds to the rules for a few seeds", async () => {
    for (let seed = 1_000; seed < 1_060; seed++) {
      expect(await runSeed(seed)).toMatchObject({ seed, broken: undefined });
    }
  });
});

describe("random numbers", () => {
  it("are those of the seed and the stream, and of nothing else", () => {
    const draw = (seed: number, stream: string): number[] => {
      const random = new Random(seed, stream);
      return Array.from({ length: 20 }, () => random.below(1_000));
    };
    expect(draw(1, "a")).toEqual(draw(1, "a"));
    expect(draw(1, "a")).not.toEqual(draw(1, "b"));
    expect(draw(1, "a")).not.toEqual(draw(2, "a"));
  });
});

describe("virtual time", () => {
  it("runs timers in order, breaks ties by the seed, and forgets the dead", () => {
    const clock = new VirtualClock(new Random(1, "clock"));
    const ran: string[] = [];
    clock.after("a", 20, () => ran.push("late"));
    clock.after("a", 10, () => ran.push("early"));
    clock.after("b", 5, () => ran.push("dead"));
    clock.drop("b");
    clock.after("b", 1, () => ran.push("dead"));
    while (clock.advance());
    expect(ran).toEqual(["early", "late"]);
    expect(clock.pending("a")).toBe(0);
  });
});

describe("the list of faults", () => {
  it("has at least 45, each with a name of its own and a file that is there", () => {
    expect(FAULTS.length).toBeGreaterThanOrEqual(45);
    expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
    for (const { file } of FAULTS) {
      const source = file.replace("/dist/", "/src/").replace(/\.js$/, ".ts");
      const path = fileURLToPath(new URL(`../../../packages/${source}`, import.meta.url));
      expect(readFileSync(path, "utf8")).not.toBe("");
    }
  });
});
