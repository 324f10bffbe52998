import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type AgentFile, findAgentFiles } from "./agent-files.ts";
import { isGuidancePath } from "./guidance-files.ts";
import { realPath } from "../settings/project-file.ts";

let home: string;
let cwd: string;
let warnings: string[];

beforeEach(() => {
  home = realPath(mkdtempSync(join(tmpdir(), "gyre-agents-")));
  cwd = join(home, "project");
  mkdirSync(join(cwd, ".git"), { recursive: true });
  warnings = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const at = join(home, path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, text);
  return at;
}

function find(
  more: Partial<Parameters<typeof findAgentFiles>[0]> = {},
): Promise<readonly AgentFile[]> {
  const config = join(home, "config");
  return findAgentFiles({ cwd, home, config, warn: (text) => warnings.push(text), ...more });
}

const REVIEWER =
  "---\nname: reviewer\ndescription: Reviews changes.\ntools: Read, Grep, Bash\nmodel: inherit\n---\nBe strict.\n";

it("reads the agents of a project and of other programs, with our names of tools", async () => {
  write("project/.claude/agents/reviewer.md", REVIEWER);
  write(
    "project/.gyre/agents/writer.md",
    "---\ndescription: Writes prose.\ntools: [read, write]\nmodel: claude-haiku-4-5\n---\nWrite.",
  );
  const found = await find();
  expect(warnings).toEqual([]);
  expect(found).toMatchObject([
    { name: "writer", tools: ["read", "write"], model: "claude-haiku-4-5", instructions: "Write." },
    {
      name: "reviewer",
      description: "Reviews changes.",
      tools: ["read", "grep", "shell"],
      instructions: "Be strict.",
    },
  ]);
  expect(found[1]).not.toHaveProperty("model");
});

it("has the user's before those of the project, and says what is not used", async () => {
  const own = write("config/agents/reviewer.md", REVIEWER);
  const other = write("project/.gyre/agents/reviewer.md", REVIEWER);
  const nameless = write("project/.gyre/agents/nothing.md", "---\nname: nothing\n---\n");
  const taken = write("project/.gyre/agents/explore.md", REVIEWER.replace("reviewer", "explore"));
  const odd = write("project/.gyre/agents/odd.md", REVIEWER.replace("reviewer", '"a b"'));
  expect((await find()).map(({ path }) => path)).toEqual([own]);
  expect(warnings).toEqual([
    `${taken} is not used: "explore" is an agent of gyre. Give it another name.`,
    `${nameless} is not used: it has no description.`,
    `${odd} is not used: its name has to be at most 64 letters, digits, "-" and "_", not "a b".`,
    `${other} is not used: ${own} has the same name.`,
  ]);
});

it("names tools that are not there, and leaves them out", async () => {
  const path = write("project/.gyre/agents/a.md", REVIEWER.replace("Bash", "Rm, mcp__x__y"));
  expect((await find())[0]?.tools).toEqual(["read", "grep", "mcp__x__y"]);
  expect(warnings).toEqual([`${path}: there is no tool "Rm"; the agent has the others.`]);
});

it("does not use one that an agent wrote and the user has not seen", async () => {
  const path = write("project/.gyre/agents/a.md", REVIEWER);
  expect(isGuidancePath(path)).toBe(true);
  const held: string[] = [];
  const texts = { find: () => ({ path }) };
  expect(await find({ texts, hold: (text) => held.push(text.path) })).toEqual([]);
  expect(held).toEqual([path]);
});
