import { chmod, lstat, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type EditDetails, editTool, MAX_EDIT_BYTES, MAX_EDITS } from "./tool.ts";
import type { Edit } from "./match.ts";
import type { ToolEnv } from "../contract/env.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { type TemporaryEnv, temporaryEnv } from "../testing/temporary-env.ts";

let temporary: TemporaryEnv;
let root: string;
let workspace: Workspace;
let env: ToolEnv;

beforeEach(async () => {
  temporary = await temporaryEnv();
  ({ env, root } = temporary);
  ({ workspace } = env);
});

afterEach(() => temporary.remove());

async function put(name: string, content: string | Uint8Array, isRead = true): Promise<void> {
  await writeFile(join(root, name), content);
  if (isRead && typeof content === "string") env.seen.note(name, content);
}

const content = (name: string): Promise<string> => readFile(join(root, name), "utf8");

async function edit(
  path: string,
  edits: Edit[],
  signal: AbortSignal = new AbortController().signal,
): Promise<{ text: string; details: EditDetails }> {
  const host = { call: () => Promise.reject(new Error("no other tools")) };
  const result = await editTool(env).execute(
    { path, edits },
    { id: "1", signal, update: () => {}, host, messages: [] },
  );
  if (typeof result === "string") throw new Error("Only text.");
  const [first] = result.content;
  return { text: first?.type === "text" ? first.text : "", details: result.details as EditDetails };
}

test("edits are made, reported in one line, and shown as a diff", async () => {
  await put("a.ts", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n");
  const { text, details } = await edit("a.ts", [
    { oldText: "ten\n", newText: "10\n11\n" },
    { oldText: "two", newText: "2" },
  ]);
  expect(text).toBe("Applied 2 edits to a.ts (lines 2, 10-11).");
  expect(await content("a.ts")).toBe(
    "one\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\n10\n11\n",
  );
  expect(details).toEqual({
    path: "a.ts",
    diff:
      "--- a/a.ts\n+++ b/a.ts\n@@ -1,5 +1,5 @@\n one\n-two\n+2\n three\n four\n five\n" +
      "@@ -7,4 +7,5 @@\n seven\n eight\n nine\n-ten\n+10\n+11\n",
    edits: [
      { lines: "2", tolerance: "exact" },
      { lines: "10-11", tolerance: "exact" },
    ],
  });
});

test("all or none", async () => {
  await put("a.ts", "one\ntwo\n");
  const edits = [
    { oldText: "one", newText: "1" },
    { oldText: "three", newText: "3" },
  ];
  await expect(edit("a.ts", edits)).rejects.toThrow("oldText of edits[1] is not in a.ts");
  expect(await content("a.ts")).toBe("one\ntwo\n");
});

test("one edit after another: what was written is what was seen", async () => {
  await put("a.ts", "one\ntwo\n");
  await edit("a.ts", [{ oldText: "one", newText: "1" }]);
  expect((await edit("a.ts", [{ oldText: "1\n", newText: "I\n" }])).text).toBe(
    "Applied 1 edit to a.ts (line 1).",
  );
});

test("mode and link are kept", async () => {
  await put("a.sh", "echo a\n");
  await chmod(join(root, "a.sh"), 0o755);
  await symlink("a.sh", join(root, "link"));
  const { details } = await edit("link", [{ oldText: "echo a", newText: "echo b" }]);
  expect(details.path).toBe("a.sh");
  expect(await content("a.sh")).toBe("echo b\n");
  expect((await stat(join(root, "a.sh"))).mode & 0o777).toBe(0o755);
  expect((await lstat(join(root, "link"))).isSymbolicLink()).toBe(true);
});

describe("what the agent reads", () => {
  test("that it had not read the file", async () => {
    await put("a.ts", "one\n", false);
    expect((await edit("a.ts", [{ oldText: "one", newText: "1" }])).text).toContain(
      "You had not read this file",
    );
  });

  test("that the file has changed elsewhere", async () => {
    await put("a.ts", "one\ntwo\n");
    await writeFile(join(root, "a.ts"), "one\ntwo\nthree\n");
    expect((await edit("a.ts", [{ oldText: "one", newText: "1" }])).text).toContain(
      "has changed since you read it",
    );
  });

  test("that its text was indented", async () => {
    await put("a.ts", "\tone\n\ttwo\n");
    expect((await edit("a.ts", [{ oldText: "one\ntwo\n", newText: "one\n2\n" }])).text).toContain(
      "indented as the file is",
    );
  });

  test("the nearest place of a miss, with visible white space", async () => {
    await put("a.ts", "if (a) {\r\n\tb();\r\n  c(1); \r\n}\r\n");
    const miss = edit("a.ts", [{ oldText: "if (a) {\n\tb();\n  c(2);\n}", newText: "" }]);
    await expect(miss).rejects.toThrow(
      /line 1; 1 of 4 lines are the same[^]*! file {2}3 ··c\(1\);·␍\n! yours {3}··c\(2\);/,
    );
  });
});

describe("refused", () => {
  test("the place has changed since it was read", async () => {
    await put("a.ts", "one\ntwo\n");
    await writeFile(join(root, "a.ts"), "one // new\ntwo\n");
    await expect(edit("a.ts", [{ oldText: "one", newText: "1" }])).rejects.toThrow("line 1");
    expect(await content("a.ts")).toBe("one // new\ntwo\n");
  });

  test("another program writes between reading and writing: nothing is lost", async () => {
    await put("a.ts", "one\ntwo\n");
    const read = workspace.read.bind(workspace);
    env.workspace = new Proxy(workspace, {
      get(target, key) {
        if (key !== "read") {
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        }
        return async (path: string, maxBytes?: number) => {
          const result = await read(path, maxBytes);
          await writeFile(join(root, "a.ts"), "ONE\ntwo\n");
          // Another time than before, however coarse the clock of the file system is.
          await utimes(join(root, "a.ts"), 1, 1);
          return result;
        };
      },
    });
    await expect(edit("a.ts", [{ oldText: "one", newText: "1" }])).rejects.toMatchObject({
      fault: "changed",
    });
    expect(await content("a.ts")).toBe("ONE\ntwo\n");
  });

  test("what is not UTF-8", async () => {
    await put("a.bin", Uint8Array.of(0x61, 0xff, 0x0a));
    await expect(edit("a.bin", [{ oldText: "a", newText: "b" }])).rejects.toThrow(
      "not text in UTF-8",
    );
  });

  test("a file that is too long", async () => {
    await put("a.txt", new Uint8Array(MAX_EDIT_BYTES + 1));
    await expect(edit("a.txt", [{ oldText: "a", newText: "b" }])).rejects.toMatchObject({
      fault: "too_large",
    });
  });

  test("a file that is not there, or not inside", async () => {
    await expect(edit("b.ts", [{ oldText: "a", newText: "b" }])).rejects.toMatchObject({
      fault: "missing",
    });
    await expect(edit("../b.ts", [{ oldText: "a", newText: "b" }])).rejects.toMatchObject({
      fault: "outside",
    });
  });

  test("an aborted call writes nothing", async () => {
    await put("a.ts", "one\n");
    const stop = edit("a.ts", [{ oldText: "one", newText: "1" }], AbortSignal.abort());
    await expect(stop).rejects.toMatchObject({ name: "AbortError" });
    expect(await content("a.ts")).toBe("one\n");
  });
});

test("access names the file itself, not the link to it", async () => {
  await put("a.ts", "one\n");
  await symlink("a.ts", join(root, "link"));
  const access = await editTool(env).access({ path: "link", edits: [{}, {}] });
  const targets = ["a.ts"];
  const summary = "Edit a.ts (2 places)";
  expect(access).toEqual({ kind: "write", targets, reads: targets, summary });
  await expect(editTool(env).access({ path: ".git/config", edits: [] })).rejects.toMatchObject({
    fault: "read_only",
  });
});

test("a call has an edit, and not too many", async () => {
  await put("a", "x");
  await expect(edit("a", [])).rejects.toThrow("There are no edits");
  const many = Array.from({ length: MAX_EDITS + 1 }, () => ({ oldText: "x", newText: "y" }));
  await expect(edit("a", many)).rejects.toThrow("201 edits; one call takes at most 200");
  expect(await content("a")).toBe("x");
});
