import { describe, expect, it } from "vitest";
import { type Forgotten, runDeaths } from "./deaths.ts";

describe("a program that dies before and after each commit", () => {
  it("goes on as if nothing had happened, or says what is not known", async () => {
    let compared = 0;
    for (let seed = 1; seed <= 8; seed++) {
      const result = await runDeaths(seed);
      expect(result).toMatchObject({ seed, broken: [] });
      compared += result.compared;
    }
    expect(compared).toBeGreaterThan(100);
  });

  it("the same seed gives the same result", async () => {
    expect(await runDeaths(3)).toEqual(await runDeaths(3));
  });

  it.each<Forgotten>(["unfinished", "interrupted", "queued"])(
    "notices a second life that does not know what was %s",
    async (forgotten) => {
      for (let seed = 1; seed <= 100; seed++) {
        const { broken } = await runDeaths(seed, forgotten);
        if (broken.length > 0) return;
      }
      expect.unreachable();
    },
  );
});
