import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  findSkills,
  MAX_SKILL_TOKENS,
  MAX_SKILLS_TOKENS,
  type Skill,
  skillsText,
} from "./skills.ts";

let world: string;
let warnings: string[];

beforeEach(() => {
  world = mkdtempSync(join(realpathSync(tmpdir()), "gyre-skills-"));
  warnings = [];
  mkdirSync(join(world, "home/repo/.git"), { recursive: true });
  mkdirSync(join(world, "home/repo/inner"), { recursive: true });
});
afterEach(() => rmSync(world, { recursive: true, force: true }));

/** Puts a skill at a path, by default with the name of its folder. */
function put(path: string, lines?: readonly string[]): void {
  const name = path.split("/").at(-1) ?? "";
  const file = join(world, path, "SKILL.md");
  mkdirSync(dirname(file), { recursive: true });
  const about = lines ?? [`name: ${name}`, `description: From ${path}.`];
  writeFileSync(file, ["---", ...about, "---", "", `Do ${name}.`, ""].join("\n"));
}

async function find(cwd = "home/repo/inner"): Promise<readonly Skill[]> {
  const home = join(world, "home");
  const warn = (text: string): void => void warnings.push(text.replaceAll(world, ""));
  return findSkills({ cwd: join(world, cwd), home, config: join(home, ".config/gyre"), warn });
}

describe("skills", () => {
  it("are the user's and the project's, from the folder up to its root", async () => {
    put("home/.config/gyre/skills/a");
    put("home/.agents/skills/b");
    put("home/.claude/skills/c");
    put("home/repo/inner/.gyre/skills/d");
    put("home/repo/inner/.agents/skills/e");
    put("home/repo/.claude/skills/f");
    put("home/repo/other/.agents/skills/not");
    put(".agents/skills/nor");
    const skills = await find();
    expect(skills.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "e", "f"]);
    expect(skills[1]).toEqual({
      name: "b",
      description: "From home/.agents/skills/b.",
      folder: join(world, "home/.agents/skills/b"),
    });
    expect(warnings).toEqual([]);
  });

  it("are none where there are none", async () => {
    mkdirSync(join(world, "home/.agents/skills/empty"), { recursive: true });
    writeFileSync(join(world, "home/.agents/skills/README.md"), "No skill.");
    expect(await find()).toEqual([]);
    expect(skillsText([])).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it("of a project do not take the place of the user's, the nearer that of the farther", async () => {
    put("home/.agents/skills/fox");
    put("home/repo/.agents/skills/fox");
    put("home/repo/.agents/skills/bear");
    put("home/repo/inner/.claude/skills/bear");
    const skills = await find();
    expect(skills.map(({ description }) => description)).toEqual([
      "From home/.agents/skills/fox.",
      "From home/repo/inner/.claude/skills/bear.",
    ]);
    expect(warnings).toEqual([
      "/home/repo/.agents/skills/bear/SKILL.md is not used: /home/repo/inner/.claude/skills/bear/SKILL.md has the same name.",
      "/home/repo/.agents/skills/fox/SKILL.md is not used: /home/.agents/skills/fox/SKILL.md has the same name.",
    ]);
  });

  it("are there once, by whatever links", async () => {
    put("home/repo/.agents/skills/fox");
    mkdirSync(join(world, "home/repo/.claude"));
    symlinkSync("../.agents/skills", join(world, "home/repo/.claude/skills"));
    expect(await find()).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  it("of a project are not outside of it; the user's may be anywhere", async () => {
    put("else/fox");
    for (const folder of ["home/repo/.agents/skills", "home/.agents/skills"]) {
      mkdirSync(join(world, folder), { recursive: true });
    }
    symlinkSync(join(world, "else/fox"), join(world, "home/repo/.agents/skills/fox"));
    expect(await find()).toEqual([]);
    expect(warnings).toEqual([
      "/home/repo/.agents/skills/fox/SKILL.md is not used: it is a link that leads out of the project.",
    ]);
    // Nor is a folder outside, whose file leads back into it.
    put("home/repo/real");
    mkdirSync(join(world, "else/bear"));
    symlinkSync(join(world, "home/repo/real/SKILL.md"), join(world, "else/bear/SKILL.md"));
    symlinkSync(join(world, "else/bear"), join(world, "home/repo/.agents/skills/bear"));
    rmSync(join(world, "home/repo/.agents/skills/fox"));
    expect(await find()).toEqual([]);
    expect(warnings).toHaveLength(2);
    symlinkSync(join(world, "else/fox"), join(world, "home/.agents/skills/fox"));
    expect(await find()).toMatchObject([{ name: "fox", folder: join(world, "else/fox") }]);
  });

  it("have all that the format knows", async () => {
    put("home/.agents/skills/fox", [
      "name: fox",
      "description: >",
      "  Makes a fox.",
      "  Use it for foxes.",
      "license: MIT",
      "compatibility: Needs python3",
      "metadata:",
      "  author: example",
      "allowed-tools: Read Bash(git add *), Grep",
      "model: of another program",
    ]);
    expect(await find()).toEqual([
      {
        name: "fox",
        description: "Makes a fox. Use it for foxes.",
        folder: join(world, "home/.agents/skills/fox"),
        license: "MIT",
        compatibility: "Needs python3",
        metadata: { author: "example" },
        allowedTools: ["Read", "Bash(git add *)", "Grep"],
      },
    ]);
    expect(warnings).toEqual([]);
  });
});

describe("a skill with something wrong", () => {
  const where = "/home/.agents/skills/fox/SKILL.md";
  it.each([
    [["name: fox"], `${where}, line 1: the skill is not used: it has no description.`],
    [["description: a"], `${where}, line 1: the skill is not used: it has no name.`],
    [
      ["name: fox", "description:"],
      `${where}, line 3: the skill is not used: it has no description.`,
    ],
    [
      ["description: a", "name: Big Fox"],
      `${where}, line 3: the skill is not used: its name has to be at most 64 of a-z, 0-9 and single "-" between them.`,
    ],
    [["name: *fox"], `${where}, line 2: the value of "name" cannot be read: write it in quotes.`],
  ])("is left out: %j", async (lines, problem) => {
    put("home/.agents/skills/fox", lines);
    expect(await find()).toEqual([]);
    expect(warnings).toEqual([problem]);
  });

  it.each([
    [["name: bear", "description: a"], 'line 2: the name "bear" is not that of its folder, "fox".'],
    [
      ["name: fox", `description: ${"a".repeat(1025)}`],
      "line 3: the description has more than 1024 characters.",
    ],
    [
      ["name: fox", "description: a", `compatibility: ${"a".repeat(501)}`],
      'line 4: "compatibility" has more than 500 characters.',
    ],
    [
      ["name: fox", "description: a", "metadata: b"],
      'line 4: "metadata" has to be keys with texts.',
    ],
    [["name: fox", "description: a", "license: [b]"], 'line 4: "license" has to be a text.'],
    [
      ["name: fox", "description: a", "allowed-tools:", "  a: b"],
      'line 4: "allowed-tools" has to be a text or a list.',
    ],
  ])("is used where it can be: %#", async (lines, problem) => {
    put("home/.agents/skills/fox", lines);
    const [skill] = await find();
    expect(skill?.description.replace(/^a+$/, "a")).toBe("a");
    expect(skill?.description.length).toBeLessThanOrEqual(1024);
    expect(warnings).toEqual([`${where}, ${problem}`]);
  });

  it("that cannot be read is reported", async () => {
    mkdirSync(join(world, "home/.agents/skills/fox/SKILL.md"), { recursive: true });
    expect(await find()).toEqual([]);
    expect(warnings).toEqual([`${where} is not used: it cannot be read (EISDIR).`]);
  });
});

describe("what the system prompt says of skills", () => {
  const skill = (name: string, description: string): Skill => ({ name, description, folder: "/" });

  it("is name and description, on a line each", () => {
    const text = skillsText([skill("fox", "Makes\na fox."), skill("bear", "Makes a bear.")]);
    expect(text?.split("\n").slice(1)).toEqual(["- fox: Makes a fox.", "- bear: Makes a bear."]);
  });

  it.each([
    ["words", "Use this for foxes, bears and other animals. ".repeat(30)],
    ["one long word", "fox".repeat(340)],
    ["Chinese", "狐狸".repeat(500)],
    ["pairs", "🦊".repeat(500)],
  ])("is short, whatever the description: %s", (_what, description) => {
    const line = skillsText([skill("fox", description)])?.split("\n")[1] ?? "";
    expect(line).toMatch(/^- fox: .+…$/);
    expect(Buffer.from(line).toString("utf8")).toBe(line);
    // An estimate, which is farthest off for characters that no description consists of.
    expect(encode(line).length).toBeLessThanOrEqual(MAX_SKILL_TOKENS * 1.5);
  });

  it("is short, however many there are", () => {
    const many = Array.from({ length: 300 }, (_, nth) =>
      skill(`animal-${nth}`, `Makes animal number ${nth}, with fur, teeth and a tail of its own.`),
    );
    const text = skillsText(many) ?? "";
    const lines = text.split("\n");
    expect(lines.at(-1)).toBe(
      `- and ${300 - (lines.length - 2)} more: skill without a name lists all.`,
    );
    expect(lines.length).toBeGreaterThan(50);
    expect(encode(text).length).toBeLessThanOrEqual(MAX_SKILLS_TOKENS * 1.1);
  });
});
