import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HOOK_EVENTS, namesOfTool } from "@gyre/coding/internal/settings/hooks";
import { buildProgram, type Ended, type Program } from "../packages/cli/src/testing/program.ts";
import { type Script, scriptedService } from "../packages/cli/src/testing/scripted-service.ts";
import { type Fence, readFences, root } from "./snippets.ts";

// The plugin and the hooks of docs/plugins.md, as they stand there, and the example.

const page = readFileSync(join(root, "docs/plugins.md"), "utf8");

let program: Program;
let home: string;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
beforeEach(() => {
  home = mkdtempSync(join(dirname(program.entry), "..", "home-"));
});

/** The files of a section, by the names that stand behind their languages. */
function readFiles(heading: string): Fence[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return readFences(section).filter(({ note }) => /^[\w./-]+$/.test(note));
}

function write(path: string, text: string): void {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function gyre(script: Script, args: readonly string[]): Promise<Ended> {
  const service = await scriptedService(script);
  try {
    return await program.gyre(args, { home, service });
  } finally {
    await service.close();
  }
}

/** What was sent in a request, as text. */
const sent = ({ requests }: Ended, nth: number): string => requests[nth]?.text ?? "";

describe("docs/plugins.md", () => {
  it("has a plugin in 15 lines that works", async () => {
    const files = readFiles("A plugin in 15 lines");
    expect(files.map(({ note }) => note)).toEqual(["words.mjs", "config.json"]);
    expect(files[0]?.body.trim().split("\n")).toHaveLength(15);
    for (const { note, body } of files) write(`config/gyre/${note}`, body);
    const ended = await gyre(
      [
        { say: [{ call: "count_words", arguments: { text: "so it goes" } }] },
        { say: "There are three." },
      ],
      ["-p", "How many words?", "--quiet"],
    );
    expect(ended).toMatchObject({ code: 0, stdout: "There are three.\n", stderr: "" });
    expect(sent(ended, 1)).toContain("3 words");
  });

  it("has hooks that work", async () => {
    const files = readFiles("Hooks");
    expect(files.map(({ note }) => note)).toEqual([
      "config.json",
      ".gyre/hooks/protect-license.sh",
    ]);
    const [config, script] = files;
    write("work/.gyre/config.json", config?.body ?? "");
    write(`work/${script?.note}`, script?.body ?? "");
    const git = (...args: string[]): void =>
      void execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...args], {
        cwd: join(home, "work"),
      });
    git("init", "--quiet");
    git("commit", "--quiet", "--allow-empty", "-m", "A first step");
    await gyre([], ["trust"]);
    const ended = await gyre(
      [
        {
          say: [
            { call: "write", arguments: { path: "LICENSE", content: "Mine." } },
            { call: "write", arguments: { path: "tea.txt", content: "green" } },
          ],
        },
        { say: "I wrote one of them." },
      ],
      ["-p", "Write both", "--mode", "auto-edit", "--quiet"],
    );
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(sent(ended, 0)).toContain("The last commit is: A first step");
    expect(sent(ended, 1)).toContain("Denied by a hook: The license is for people to change.");
    expect(readFileSync(join(home, "work/tea.txt"), "utf8")).toBe("green");
  });

  it("names each event, and other agents' names of tools as they are", () => {
    const [, rows = ""] = page.split("| event | when | exit 2 | output for the model |\n");
    const events = [...(rows.split("\n\n")[0]?.matchAll(/^\| `(\w+)`/gm) ?? [])];
    expect(events.map(([, event]) => event)).toEqual(HOOK_EVENTS);
    const names = page
      .replaceAll("\n  ", " ")
      .matchAll(/`([A-Z]\w+)` (?:is )?(`\w+`(?: and `\w+`)?)/g);
    const described = [...names].map(([, name = "", tools = ""]) => ({
      name,
      tools: tools.replaceAll("`", "").split(" and "),
    }));
    expect(described.length).toBeGreaterThan(8);
    for (const { name, tools } of described) {
      for (const tool of tools) expect(namesOfTool(tool)).toContain(name);
    }
  });
});

describe("examples/plugin", () => {
  const use = (): void => {
    write("config/gyre/config.json", `{"plugins": ["./tea.mjs"]}`);
    copyFileSync(join(root, "examples/plugin/tea.mjs"), join(home, "config/gyre/tea.mjs"));
  };

  it("gives a tool", async () => {
    use();
    const ended = await gyre(
      [{ say: [{ call: "steep", arguments: { kind: "mint" } }] }, { say: "Seven minutes." }],
      ["-p", "How long does mint tea take?", "--quiet"],
    );
    expect(ended).toMatchObject({ code: 0, stdout: "Seven minutes.\n", stderr: "" });
    expect(sent(ended, 1)).toContain("mint tea takes 7 minutes.");
  });

  it("lets no coffee in", async () => {
    use();
    const ended = await gyre([], ["-p", "How long does coffee take?"]);
    expect(ended).toMatchObject({
      code: 1,
      stderr: "gyre: The prompt was not sent: Only tea is served here.\n",
      requests: [],
    });
  });
});
