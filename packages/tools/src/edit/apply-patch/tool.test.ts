import { mkdir, readdir, readFile, stat, symlink, writeFile, chmod } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { applyPatchTool, type PatchDetails } from "./tool.ts";
import { EditError } from "../error.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { parsePatch } from "./patch-text.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import { type TemporaryEnv, temporaryEnv } from "../../testing/temporary-env.ts";

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

async function put(files: Record<string, string>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), content);
    env.seen.note(name, content);
  }
}

const content = (name: string): Promise<string> => readFile(join(root, name), "utf8");
const inMarkers = (...lines: string[]): string =>
  ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");

async function patch(text: string): Promise<{ text: string; details: PatchDetails }> {
  const host = { call: () => Promise.reject(new Error("no other tools")) };
  const signal = new AbortController().signal;
  const result = await applyPatchTool(env).execute(
    { patch: text },
    { id: "1", signal, update: () => {}, host, messages: [] },
  );
  if (typeof result === "string") throw new Error("Only text.");
  const [first] = result.content;
  return {
    text: first?.type === "text" ? first.text : "",
    details: result.details as PatchDetails,
  };
}

test("files are added, changed, moved and deleted", async () => {
  await put({ "a.ts": "one\ntwo\nthree\n", "b.ts": "old\n", "c.ts": "x\ny\n" });
  await chmod(join(root, "c.ts"), 0o755);
  const { text, details } = await patch(
    inMarkers(
      "*** Add File: new/d.ts",
      "+first",
      "+",
      "+last",
      "*** Update File: a.ts",
      "@@",
      " one",
      "-two",
      "+2",
      " three",
      "*** Delete File: b.ts",
      "*** Update File: c.ts",
      "*** Move to: e.ts",
      "@@",
      "-x",
      "+z",
    ),
  );
  expect(text).toBe(
    "Added new/d.ts (3 lines).\nApplied 1 change to a.ts (lines 1-3).\nDeleted b.ts.\n" +
      "Applied 1 change to c.ts (line 1). Moved c.ts to e.ts.",
  );
  expect((await readdir(root)).sort()).toEqual(["a.ts", "e.ts", "new"]);
  expect(await content("new/d.ts")).toBe("first\n\nlast\n");
  expect(await content("a.ts")).toBe("one\n2\nthree\n");
  expect(await content("e.ts")).toBe("z\ny\n");
  expect((await stat(join(root, "e.ts"))).mode & 0o777).toBe(0o755);
  expect(details.files.map(({ type, path }) => [type, path])).toEqual([
    ["add", "new/d.ts"],
    ["update", "a.ts"],
    ["delete", "b.ts"],
    ["update", "c.ts"],
  ]);
  expect(env.seen.get("e.ts")?.text).toBe("z\ny\n");
  expect(env.seen.get("b.ts")).toBeUndefined();
});

describe("places", () => {
  const twice =
    "class A {\n  f() {\n    return 1;\n  }\n}\nclass B {\n  f() {\n    return 1;\n  }\n  g() {\n    return 1;\n  }\n}\n";

  test("several without a line behind @@ are refused", async () => {
    await put({ "a.ts": twice });
    await expect(
      patch(inMarkers("*** Update File: a.ts", "@@", "-    return 1;", "+    return 2;")),
    ).rejects.toThrow("lines 3, 8, 11");
    expect(await content("a.ts")).toBe(twice);
  });

  test("lines behind @@ decide", async () => {
    await put({ "a.ts": twice });
    await patch(
      inMarkers(
        "*** Update File: a.ts",
        "@@ class A {",
        "-    return 1;",
        "+    return 2;",
        "@@ class B {",
        "@@ g() {",
        "-    return 1;",
        "+    return 3;",
      ),
    );
    expect(await content("a.ts")).toBe(
      twice.replace("return 1", "return 2").replace(/1(?=;\n {2}\}\n\}\n$)/, "3"),
    );
  });

  test("a line behind @@ that leaves several does not", async () => {
    await put({ "a.ts": twice });
    const text = inMarkers(
      "*** Update File: a.ts",
      "@@ class B {",
      "-    return 1;",
      "+    return 2;",
    );
    await expect(patch(text)).rejects.toThrow("lines 8, 11");
  });

  test("a line behind @@ that is not there is an error", async () => {
    await put({ "a.ts": twice });
    const text = inMarkers(
      "*** Update File: a.ts",
      "@@ class C {",
      "-    return 1;",
      "+    return 2;",
    );
    await expect(patch(text)).rejects.toThrow('no line "class C {"');
  });

  test("a place outside of what @@ names is not taken, be it the only one", async () => {
    await put({ "a.ts": twice.replace(/return 1;(?=\n {2}\}\n {2}g)/, "return 9;") });
    const text = inMarkers(
      "*** Update File: a.ts",
      "@@ class B {",
      "@@ f() {",
      "-    return 1;",
      "+    return 2;",
    );
    await expect(patch(text)).rejects.toMatchObject({ code: "missing" });
  });

  test("behind a line that begins nothing", async () => {
    await put({ "a.md": "# A\ntext\n# B\ntext\n" });
    await patch(inMarkers("*** Update File: a.md", "@@ # B", "-text", "+word"));
    expect(await content("a.md")).toBe("# A\ntext\n# B\nword\n");
  });

  test("changes are in the order of the file", async () => {
    await put({ "a.ts": "one\ntwo\nthree\n" });
    const text = inMarkers("*** Update File: a.ts", "@@", "-three", "+3", "@@", "-one", "+1");
    await expect(patch(text)).rejects.toThrow("in the order of the file");
  });

  test("the end of the file", async () => {
    await put({ "a.ts": "x\ny\nx\n" });
    await patch(inMarkers("*** Update File: a.ts", "@@", "-x", "+z", "*** End of File"));
    expect(await content("a.ts")).toBe("x\ny\nz\n");
    await patch(inMarkers("*** Update File: a.ts", "@@", "+end", "*** End of File"));
    expect(await content("a.ts")).toBe("x\ny\nz\nend\n");
  });

  test("lines that come without a place are refused", async () => {
    await put({ "a.ts": "x\n" });
    await expect(patch(inMarkers("*** Update File: a.ts", "@@", "+y"))).rejects.toThrow(
      "says not where",
    );
  });

  test("the file's line ends, indentation and last line are kept", async () => {
    await put({ "a.ts": "f {\r\n\tone\r\n\ttwo", "b.ts": "x\ny" });
    await patch(
      inMarkers(
        "*** Update File: a.ts",
        "@@",
        "     one",
        "-    two",
        "+    2",
        "+    3",
        "*** Update File: b.ts",
        "@@",
        "+z",
        "*** End of File",
      ),
    );
    expect(await content("a.ts")).toBe("f {\r\n\tone\r\n\t2\r\n\t3");
    expect(await content("b.ts")).toBe("x\ny\nz");
  });

  test("a blank line that lost its space", async () => {
    await put({ "a.ts": "a\n\nb\n" });
    await patch(inMarkers("*** Update File: a.ts", "@@", " a", "", "-b", "+c", ""));
    expect(await content("a.ts")).toBe("a\n\nc\n");
  });

  test("a place that has changed since it was read is refused", async () => {
    await put({ "a.ts": "a\nb\n" });
    await writeFile(join(root, "a.ts"), "a  \nb\n");
    await expect(patch(inMarkers("*** Update File: a.ts", "@@", "-a", "+c"))).rejects.toMatchObject(
      { code: "changed" },
    );
  });
});

describe("all or nothing", () => {
  test("a change without a place: no file is touched", async () => {
    await put({ "a.ts": "a\n", "b.ts": "b\n" });
    const text = inMarkers(
      "*** Add File: c.ts",
      "+c",
      "*** Update File: a.ts",
      "@@",
      "-a",
      "+x",
      "*** Update File: b.ts",
      "@@",
      "-nothing",
      "+x",
    );
    await expect(patch(text)).rejects.toThrow("the change at line 9 of the patch is not in b.ts");
    expect((await readdir(root)).sort()).toEqual(["a.ts", "b.ts"]);
    expect(await content("a.ts")).toBe("a\n");
  });

  const everything = inMarkers(
    "*** Add File: new.ts",
    "+n",
    "*** Update File: a.ts",
    "@@",
    "-a",
    "+x",
    "*** Delete File: b.ts",
    "*** Update File: c.ts",
    "*** Move to: moved.ts",
    "*** Update File: last.ts",
    "@@",
    "-l",
    "+x",
  );
  const before = { "a.ts": "a\n", "b.ts": "b\n", "c.ts": "c\n", "last.ts": "l\n" };

  function failingOn(path: string, also?: () => Promise<void>): Workspace {
    return new Proxy(workspace, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        if (key !== "write") return value.bind(target);
        return async (...args: Parameters<Workspace["write"]>) => {
          if (args[0] !== path) return target.write(...args);
          await also?.();
          throw new Error("No space left.");
        };
      },
    });
  }

  test("a write that fails: what was done before it is put back", async () => {
    await put(before);
    env.workspace = failingOn("last.ts");
    await expect(patch(everything)).rejects.toThrow(/No space left\. Nothing was changed/);
    expect((await readdir(root)).sort()).toEqual(Object.keys(before));
    for (const [name, text] of Object.entries(before)) expect(await content(name)).toBe(text);
  });

  test("what another program changed meanwhile is kept and reported", async () => {
    await put(before);
    env.workspace = failingOn("last.ts", () =>
      writeFile(join(root, "a.ts"), "another program's\n"),
    );
    await expect(patch(everything)).rejects.toThrow(/could not be put back and are changed: a\.ts/);
    expect(await content("a.ts")).toBe("another program's\n");
    expect(await content("b.ts")).toBe("b\n");
  });
});

describe("refused", () => {
  const cases: [what: string, lines: string[], message: string][] = [
    [
      "a file that is there is not added",
      ["*** Add File: a.ts", "+x"],
      "Line 2 of the patch: a.ts is there already",
    ],
    ["nor moved to", ["*** Update File: b.ts", "*** Move to: a.ts"], "a.ts is there already"],
    [
      "a file named twice",
      ["*** Delete File: a.ts", "*** Update File: ./a.ts", "@@", "-a", "+b"],
      "names a.ts twice (lines 2 and 3)",
    ],
    ["a link that is deleted", ["*** Delete File: link"], "link is a link to a.ts"],
    ["outside", ["*** Add File: ../x", "+x"], "../x"],
    ["a file that is missing", ["*** Update File: c.ts", "@@", "-a", "+b"], "c.ts"],
  ];
  test.each(cases)("%s", async (_what, lines, message) => {
    await put({ "a.ts": "a\n", "b.ts": "b\n" });
    await symlink("a.ts", join(root, "link"));
    await expect(patch(inMarkers(...lines))).rejects.toThrow(message);
    expect(await content("a.ts")).toBe("a\n");
  });

  test("a deletion of what has changed since it was read", async () => {
    await put({ "a.ts": "a\n" });
    await writeFile(join(root, "a.ts"), "b\n");
    await expect(patch(inMarkers("*** Delete File: a.ts"))).rejects.toMatchObject({
      code: "changed",
    });
  });
});

describe("the format", () => {
  const file = ["*** Update File: a", "@@", " x", "-a", "+b", " y"];
  const whole = [
    { type: "update", path: "a", hunks: [{ old: ["x", "a", "y"], next: ["x", "b", "y"] }] },
  ];
  const taken: [what: string, text: string][] = [
    ["plain", inMarkers(...file)],
    ["CRLF", inMarkers(...file).replaceAll("\n", "\r\n")],
    ["blank lines around", `\n${inMarkers(...file)}\n\n`],
    ["a here-document", `apply_patch <<'EOF'\n${inMarkers(...file)}\nEOF\n`],
    ["a bare one", `<<EOF\n${inMarkers(...file)}\nEOF`],
    ["a fence", `\`\`\`diff\n${inMarkers(...file)}\n\`\`\``],
    ["without an end, behind a line that stays", ["*** Begin Patch", ...file].join("\n")],
    [
      "without an end, in a closed wrapper",
      ["<<EOF", "*** Begin Patch", ...file, "EOF"].join("\n"),
    ],
    ["numbers of a unified diff", inMarkers(...file).replace("@@", "@@ -1,3 +1,3 @@")],
  ];
  test.each(taken)("taken: %s", (_what, text) => {
    expect(parsePatch(text)).toMatchObject(whole);
  });

  const refused: [what: string, text: string, message: string][] = [
    ["nothing", "", "starts with"],
    ["words before", `Here:\n${inMarkers(...file)}`, "Line 1 of the patch"],
    ["words behind", `${inMarkers(...file)}\nDone.`, "Line 9 of the patch: there is more"],
    ["no file", inMarkers(), "nothing between"],
    ["no change", inMarkers("*** Update File: a"), "followed by no change"],
    ["only lines that stay", inMarkers("*** Update File: a", "@@", " x"), "changes nothing"],
    ["a line without a mark", inMarkers(...file, "z"), "Line 8 of the patch"],
    ["an added line without a mark", inMarkers("*** Add File: a", "x"), 'starts with "+"'],
    ["no path", inMarkers("*** Delete File: "), "a path is missing"],
    [
      "may be cut off",
      ["*** Begin Patch", "*** Add File: a", "+x"].join("\n"),
      "may have been cut off",
    ],
    [
      "may be cut off in a change",
      ["*** Begin Patch", ...file.slice(0, -1)].join("\n"),
      "may have been cut off",
    ],
  ];
  test.each(refused)("refused: %s", (_what, text, message) => {
    expect(() => parsePatch(text)).toThrow(message);
  });

  test("any text is a patch or a clear error", () => {
    const line = fc.constantFrom(
      "*** Begin Patch",
      "*** End Patch",
      "*** Add File: a",
      "*** Update File: b",
      "*** Move to: c",
      "*** Delete File: d",
      "*** End of File",
      "@@",
      "@@ x",
      "+a",
      "-b",
      " c",
      "",
      "<<EOF",
      "EOF",
      "?",
    );
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        try {
          expect(parsePatch(["*** Begin Patch", ...lines].join("\n")).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(EditError);
        }
      }),
    );
  });
});

test("access lists all files, and that a deletion is one", async () => {
  await put({ "a.ts": "a\n", "b.ts": "b\n" });
  const tool = applyPatchTool(env);
  const moves = inMarkers("*** Update File: a.ts", "*** Move to: c.ts");
  expect(await tool.access({ patch: moves })).toEqual({
    kind: "write",
    targets: ["a.ts", "c.ts"],
    reads: ["a.ts"],
    summary: "Patch 1 file: a.ts, c.ts",
  });
  expect(await tool.access({ patch: inMarkers("*** Delete File: b.ts") })).toMatchObject({
    destructive: true,
  });
  await expect(tool.access({ patch: "no patch" })).rejects.toThrow("starts with");
});
