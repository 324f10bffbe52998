import { Agent } from "@gyre/agent";
import { expect, test } from "vitest";
import { textOfRow } from "../terminal/row.ts";
import { listWaiting } from "@gyre/coding/internal/conversation/queue";
import { waitingRows, workingRow } from "./status.ts";
import { NO_COLORS } from "../terminal/theme.ts";

test("shows what it does, since when, and how to stop it", () => {
  const row = workingRow(
    { activity: "running npm test", elapsedMs: 83_500, tick: 1, stopKey: "Esc" },
    80,
    NO_COLORS,
  );
  expect(textOfRow(row)).toBe("⠙ running npm test · 1 min 23 s · Esc interrupts");
});

test("R22: a countdown takes the place of what it does, and says how to stop it", () => {
  const countdown = "overloaded, trying again in 12 s (3 of 10)";
  const row = workingRow(
    { activity: "", countdown, elapsedMs: 83_500, tick: 1, stopKey: "Esc" },
    80,
    NO_COLORS,
  );
  expect(textOfRow(row)).toBe("⠙ overloaded, trying again in 12 s (3 of 10), Esc stops");
});

test("what waits is shown in the order of its delivery, on one row each", () => {
  const agent = new Agent();
  agent.followUp("then\nthe docs");
  agent.steer("no, the other file");
  const rows = waitingRows(listWaiting(agent), 60, NO_COLORS, "Alt+Up").map((row) =>
    textOfRow(row),
  );
  expect(rows).toEqual([
    "↳ next: no, the other file",
    "↳ then: then the docs",
    "  Alt+Up takes them back",
  ]);
});

test("one message alone is taken back as one", () => {
  const agent = new Agent();
  agent.steer("no, the other file");
  const rows = waitingRows(listWaiting(agent), 60, NO_COLORS, "Alt+Up").map((row) =>
    textOfRow(row),
  );
  expect(rows.at(-1)).toBe("  Alt+Up takes it back");
});

test("of many, the first few are shown and the rest counted", () => {
  const agent = new Agent();
  for (let n = 0; n < 7; n++) agent.steer(`message ${n}`);
  const rows = waitingRows(listWaiting(agent), 60, NO_COLORS, "Alt+Up").map((row) =>
    textOfRow(row),
  );
  expect(rows).toHaveLength(5);
  expect(rows.at(-1)).toBe("  3 more · Alt+Up takes them back");
});

test("what a message holds is not obeyed", () => {
  const agent = new Agent();
  agent.steer("\x1b[2Jgone");
  const [row] = waitingRows(listWaiting(agent), 60, NO_COLORS, "Alt+Up");
  expect(row && textOfRow(row)).toBe("↳ next: gone");
});
