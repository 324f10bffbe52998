import { describe, expect, it } from "vitest";
import { pickSeed } from "../../../support/cases.ts";
import { openBackend } from "../common/backend.ts";
import { serve } from "./serve.ts";

// A small slice of `npm run durable -- serve`.

const TRIAL = { servers: 2, clients: 2, prompts: 3, timeoutMs: 100_000 };

describe("clients of servers that are killed, stopped and cut", () => {
  it("lose nothing, do nothing twice, and have no wrong byte, on a file", async () => {
    const backend = await openBackend("sqlite");
    expect(await serve({ ...TRIAL, backend, seed: pickSeed() })).toBe(true);
  });
});

describe("the same on Postgres", { tags: "postgres" }, () => {
  it("lose nothing, do nothing twice, and have no wrong byte", async () => {
    const backend = await openBackend("postgres");
    expect(await serve({ ...TRIAL, backend, seed: pickSeed() })).toBe(true);
  });
});
