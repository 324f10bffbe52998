import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { MAX_PROMPTS, MAX_READ_BYTES, PromptHistory, promptHistoryPath } from "./prompt-history.ts";

function historyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gyre-prompts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function open(path: string | undefined, cwd = "/work") {
  const warnings: string[] = [];
  const history = new PromptHistory({
    path,
    cwd,
    clock: { now: () => 5 },
    warn: (text) => warnings.push(text),
  });
  return { history, warnings };
}

test("a prompt is written down for its folder, and found there by the next program", () => {
  const path = join(historyFolder(), "deep", "prompts.jsonl");
  open(path).history.add("first\nline");
  open(path, "/other").history.add("elsewhere");
  open(path).history.add("second");
  expect(open(path).history.prompts).toEqual(["first\nline", "second"]);
  const [line] = readFileSync(path, "utf8").split("\n");
  expect(line).toBe('{"text":"first\\nline","cwd":"/work","at":5}');
});

test.skipIf(process.platform === "win32")("other users may not read it", () => {
  const path = join(historyFolder(), "prompts.jsonl");
  open(path).history.add("secret");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("what begins with a space, is blank, or was asked just now is not remembered", () => {
  const path = join(historyFolder(), "prompts.jsonl");
  const { history } = open(path);
  for (const text of ["a", "a", " b", "", "\n", "c", "a"]) history.add(text);
  expect(history.prompts).toEqual(["a", "c", "a"]);
  expect(open(path).history.prompts).toEqual(["a", "c", "a"]);
});

test("damaged lines are passed over", () => {
  const path = join(historyFolder(), "prompts.jsonl");
  open(path).history.add("a");
  appendFileSync(path, '{"text":"half","cwd":"/work"\n{"cwd":"/work"}\nnull\n"/work"\n');
  open(path).history.add("b");
  expect(open(path).history.prompts).toEqual(["a", "b"]);
});

test("only the last ones are kept", () => {
  const { history } = open(undefined);
  for (let index = 0; index <= MAX_PROMPTS; index += 1) history.add(`prompt ${index}`);
  expect([history.prompts.length, history.prompts[0]]).toEqual([MAX_PROMPTS, "prompt 1"]);
});

test("a file that has grown long is cut to its end", () => {
  const path = join(historyFolder(), "prompts.jsonl");
  const line = `${JSON.stringify({ text: "x".repeat(1_000), cwd: "/other", at: 1 })}\n`;
  writeFileSync(path, line.repeat(Math.ceil((2 * MAX_READ_BYTES) / line.length) + 1));
  open(path, "/other").history.add("last");
  expect(statSync(path).size).toBeLessThanOrEqual(MAX_READ_BYTES + line.length);
  expect(open(path, "/other").history.prompts.at(-1)).toBe("last");
});

test("an unusable file is reported once, and prompts are remembered all the same", () => {
  const { history, warnings } = open(historyFolder());
  history.add("a");
  history.add("b");
  expect(history.prompts).toEqual(["a", "b"]);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/^Earlier prompts cannot be read: EISDIR/);
});

test("the file is in the folder for what a program remembers", () => {
  expect(promptHistoryPath({ XDG_STATE_HOME: "/state" })).toBe(join("/state/gyre/prompts.jsonl"));
  const home = promptHistoryPath({ XDG_STATE_HOME: "not/absolute", HOME: "/home/me" });
  expect(home).toBe(join("/home/me/.local/state/gyre/prompts.jsonl"));
});
