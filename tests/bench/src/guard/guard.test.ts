import { expect, test } from "vitest";
import { type Counter, runGuard } from "./guard.ts";
import { LIBRARY_ROWS, PROGRAM_ROWS } from "./rows.ts";

/** Counts as if each row were at its ratio. */
const atRatio: Counter = {
  countJobs: (side, jobs) =>
    jobs.map(
      ({ name, rounds }) => rounds * (side === "gyre" ? (LIBRARY_ROWS[name]?.ratio ?? 0) : 1),
    ),
  countNode: (args) =>
    PROGRAM_ROWS.find((row) => row.args.every((arg) => args.includes(arg)))?.ratio ?? 1,
};

test("the guard passes where each row is at its ratio, and its control fails as it must", () => {
  const { ok, lines } = runGuard(atRatio);
  expect(lines.at(-1)).toBe("7 of 7 as they must be");
  expect(ok).toBe(true);
});

test.each(Object.keys(LIBRARY_ROWS))("the guard fails where %s does its work twice", (name) => {
  const { ok, lines } = runGuard(atRatio, name);
  expect(ok).toBe(false);
  expect(lines.filter((line) => line.includes("FAILED"))).toEqual([
    expect.stringContaining(LIBRARY_ROWS[name]?.what ?? ""),
  ]);
});

test("the guard fails where the program starts slower", () => {
  const slower: Counter = {
    ...atRatio,
    countNode: (args) => atRatio.countNode(args) * (args.includes("--version") ? 1.2 : 1),
  };
  expect(runGuard(slower).ok).toBe(false);
});

test("the guard fails where its control would pass", () => {
  const blind: Counter = {
    ...atRatio,
    countJobs: (side, jobs) =>
      atRatio.countJobs(
        side,
        jobs.map((job) => ({ ...job, rounds: 1 })),
      ),
  };
  expect(runGuard(blind).ok).toBe(false);
});
