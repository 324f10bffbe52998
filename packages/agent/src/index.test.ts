import { expect, it } from "vitest";
import * as agent from "./index.ts";

it("has what the pages offer", async () => {
  const around = agent.compose<number, number>(
    [async (value, next) => (await next(value + 1)) * 10],
    (value) => Promise.resolve(value),
  );
  expect(await around(1)).toBe(20);
});
