import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { call, scriptedModel } from "@gyre/ai/testing";
import type { ApprovalRequest } from "@gyre/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../../scripts/shared/command.mjs";
import { toolListPage } from "../../scripts/docs/tool-list.mjs";
import { readFences, root } from "../snippets.ts";

// The files of the page, as they stand there, in a copy of the tools and of the program that
// uses them. Nothing else is changed in the copy.

const ENTRIES = "packages/tools/src/entries.ts";
const page = readFileSync(join(root, "docs/contributing/add-a-tool.md"), "utf8");
const blocks = readFences(page).filter(({ note }) => note.startsWith("packages/"));
const args = { path: "tea.txt", lines: ["black", "mint"] };

mkdirSync(join(root, ".tmp"), { recursive: true });
const copy = mkdtempSync(join(root, ".tmp", "tool-"));
afterAll(() => rmSync(copy, { recursive: true }));

mkdirSync(join(copy, "node_modules/@gyre"), { recursive: true });
for (const name of ["tools", "coding", "cli"]) {
  for (const part of ["package.json", "src"]) {
    cpSync(join(root, "packages", name, part), join(copy, "packages", name, part), {
      recursive: true,
      filter: (path) => !path.endsWith(".test.ts"),
    });
  }
}
for (const name of ["tools", "coding"]) {
  symlinkSync(join(copy, "packages", name), join(copy, "node_modules/@gyre", name));
}
for (const { body, note } of blocks) {
  const path = join(copy, note);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, note === ENTRIES ? readFileSync(path, "utf8") + body : body);
}

const load = (file: string): Promise<unknown> => import(join(copy, "packages", file));

it("is one folder and one line", () => {
  expect(blocks.map(({ note }) => note)).toEqual([
    ...["tool.ts", "tool.test.ts"].map((file) => `packages/tools/src/files/append/${file}`),
    ENTRIES,
  ]);
  expect(blocks.at(-1)?.body.trimEnd().split("\n")).toHaveLength(1);
});

it("type-checks as the package does", async () => {
  const config = {
    extends: "../../tsconfig.base.json",
    compilerOptions: {
      composite: false,
      incremental: false,
      noEmit: true,
      types: ["node"],
      customConditions: ["@gyre/source"],
    },
    include: ["packages/tools/src/catalog.ts", "packages/tools/src/files/append"],
  };
  writeFileSync(join(copy, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { output } = await run(process.execPath, [tsc, "-p", copy], { cwd: root });
  expect(output).toBe("");
});

describe("the tests of the page", async () => {
  await load("tools/src/files/append/tool.test.ts");
});

it("is in the help and in the list of tools", async () => {
  const catalog = (await load("tools/src/catalog.ts")) as typeof import("@gyre/tools/catalog");
  expect(toolListPage(catalog)).toContain("| `append` | edit |  |  |");
  const [, listed = ""] = /which now\shas `([\w ]+)`/.exec(page) ?? [];
  expect(catalog.TOOLS.map(({ name }) => name).join(" ")).toContain(` ${listed} `);
  expect(listed).toContain("append");
  const { OTHER_TOOLS } = (await load(
    "coding/src/core/tool-lists.ts",
  )) as typeof import("@gyre/coding/internal/core/tool-lists");
  expect(OTHER_TOOLS).toContain("append");
});

it("is shown in the terminal as the page says", async () => {
  const { callText } = (await load(
    "cli/src/text/tool-text.ts",
  )) as typeof import("../../packages/cli/src/text/tool-text.ts");
  const { toolView } = (await load(
    "cli/src/modes/tui/transcript/tool-view.ts",
  )) as typeof import("../../packages/cli/src/modes/tui/transcript/tool-view.ts");
  const { name, about } = callText("append", args);
  const result = { content: [], details: { added: 2 } };
  const { summary } = toolView("append", { result, outcome: "ok" });
  const shown = readFences(page).find(({ language }) => language === "text")?.body;
  expect(`${name} ${about}\n${summary}\n`).toBe(shown);
});

it("is a call with a kind, a title and a place for editors", async () => {
  const { createCallView } = (await load(
    "cli/src/modes/acp/tool-call.ts",
  )) as typeof import("../../packages/cli/src/modes/acp/tool-call.ts");
  expect(createCallView("append", args, "/tea")).toEqual({
    kind: "edit",
    title: "Append to `tea.txt`",
    locations: [{ path: "/tea/tea.txt" }],
  });
});

describe("in a session", () => {
  const asked: ApprovalRequest[] = [];
  const work = join(copy, "work");
  let harness: import("@gyre/coding/internal/harness/harness").Harness;
  beforeAll(async () => {
    mkdirSync(work);
    writeFileSync(join(work, "tea.txt"), "green\n");
    const { openHarness } = (await load(
      "coding/src/harness/harness.ts",
    )) as typeof import("@gyre/coding/internal/harness/harness");
    const { openStore } = (await load(
      "cli/src/core/setup.ts",
    )) as typeof import("../../packages/cli/src/core/setup.ts");
    const env = { XDG_STATE_HOME: join(copy, "state"), HOME: copy };
    const store = await openStore({ env });
    const client = scriptedModel([call("append", args), "Done."]);
    const { model } = client;
    harness = await openHarness({
      settings: { tools: ["append"], allow: ["append(cake.txt)"], sandbox: "none" },
      cwd: work,
      env,
      approvals(request) {
        asked.push(request);
        return Promise.resolve({ allow: true, fingerprint: request.fingerprint });
      },
      warn: () => {},
      fileHistory: true,
      newSession: () => store.create({ cwd: work }),
      models: {
        client,
        fallbacks: [],
        current: () => Promise.resolve(model),
        find: () => Promise.resolve(model),
        list: () => Promise.resolve([model]),
      },
    });
    await harness.prompt({ text: "Two more." });
  });
  afterAll(() => harness.close());

  it("is asked about before it changes a file", () => {
    expect(asked).toMatchObject([
      {
        tool: "append",
        access: { kind: "write", targets: ["tea.txt"], summary: "Append to tea.txt" },
      },
    ]);
    expect(readFileSync(join(work, "tea.txt"), "utf8")).toBe("green\nblack\nmint\n");
  });

  it("can be undone by /rewind", async () => {
    const history = harness.fileHistory;
    const [line] = (await history?.lines()) ?? [];
    expect(line?.changes).toMatchObject([{ path: "tea.txt" }]);
    const plan = await history?.plan({ before: line?.entry ?? 0 });
    if (plan) await history?.apply(plan, { withConflicts: false });
    expect(readFileSync(join(work, "tea.txt"), "utf8")).toBe("green\n");
  });
});
