import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CommandRegistry } from "@gyre/coding/internal/extensions/command-registry";
import type { Skill } from "@gyre/coding/internal/guidance/skills";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { FakeView } from "../testing/slash-commands.ts";
import type { SlashCommand } from "./command-context.ts";
import { customCommands, MAX_COMMAND_BYTES } from "./custom.ts";
import { filledIn } from "./files/fill.ts";

let root = "";
let project = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-custom-")));
  project = join(root, "home", "project");
  mkdirSync(join(project, ".git"), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const OWN: SlashCommand = { name: "model", about: "ours", run: () => {} };

interface Found {
  commands: SlashCommand[];
  warnings: string[];
  sent: string[];
  run: (name: string, rest?: string) => Promise<void>;
}

async function found(more: { skills?: Skill[]; commands?: CommandRegistry } = {}): Promise<Found> {
  const warnings: string[] = [];
  const sent: string[] = [];
  const commands = await customCommands({
    cwd: project,
    home: join(root, "home"),
    config: join(root, "config"),
    warn: (text) => void warnings.push(text.replaceAll(root, "")),
    harness: more,
    own: [OWN],
  });
  const run = async (name: string, rest = ""): Promise<void> => {
    const view = new FakeView({ harness: {} as Harness, env: {}, cwd: project, commands });
    await view.run(`${name} ${rest}`.trimEnd());
    sent.push(...view.sent, ...view.output);
  };
  return { commands, warnings, sent, run };
}

describe("a Markdown file for commands", () => {
  it("is a command of its name, with what it says of itself, and sends its text", async () => {
    write(
      "config/commands/review.md",
      '---\ndescription: Reviews a file\nargument-hint: "[file]"\n---\nReview $1, all of it: $ARGUMENTS\n',
    );
    const { commands, run, sent, warnings } = await found();
    expect(commands).toMatchObject([{ name: "review", about: "Reviews a file", hint: "[file]" }]);
    await run("review", '"a b.ts" now');
    expect(sent).toEqual(['Review a b.ts, all of it: "a b.ts" now']);
    expect(warnings).toEqual([]);
  });

  it("needs no lines about itself, and is described by its first line then", async () => {
    write("home/project/.gyre/commands/fix.md", "\n# Fix it\n\nRepair what is broken.");
    const { commands, run, sent } = await found();
    expect(commands).toMatchObject([{ name: "fix", about: "Fix it" }]);
    await run("fix", "the test");
    expect(sent).toEqual(["# Fix it\n\nRepair what is broken.\n\nthe test"]);
  });

  it("in a folder of its own has the folder in its name", async () => {
    write("home/project/.claude/commands/git/sub/log.md", "Look at the log.");
    expect((await found()).commands.map(({ name }) => name)).toEqual(["git:sub:log"]);
  });

  it("is read again when it is used", async () => {
    write("config/commands/a.md", "one");
    const { run, sent } = await found();
    write("config/commands/a.md", "two");
    await run("a");
    expect(sent).toEqual(["two"]);
  });

  it("runs nothing, whatever it begins with", async () => {
    write("home/project/.claude/commands/a.md", "!rm -rf ~");
    write("home/project/.claude/commands/b.md", "/quit");
    const { run, sent } = await found();
    await run("a");
    await run("b");
    expect(sent).toEqual([" !rm -rf ~", " /quit"]);
  });

  it("sends nothing that is invisible", async () => {
    write("home/project/.gyre/commands/a.md", "Do\u200B this\u202E.\u{E0041}");
    const { run, sent } = await found();
    await run("a");
    expect(sent).toEqual(["Do this."]);
  });

  it("does not take the name of a command of ours or of the user's, and that is reported once", async () => {
    write("config/commands/model.md", "x");
    write("config/commands/a.md", "the user's");
    write("home/project/.gyre/commands/a.md", "the project's");
    const { commands, warnings } = await found();
    expect(commands).toMatchObject([{ name: "a", about: "the user's" }]);
    expect(warnings).toEqual([
      '/config/commands/model.md is not used: there is a command "/model" already.',
      '/home/project/.gyre/commands/a.md is not used: there is a command "/a" already.',
    ]);
  });

  it("of a project is not used where a link leads out of it, also once it has become one", async () => {
    write("elsewhere/secret.md", "secret");
    write("home/project/.gyre/commands/a.md", "fine");
    symlinkSync(join(root, "elsewhere/secret.md"), join(project, ".gyre/commands/b.md"));
    const { commands, warnings, run } = await found();
    expect(commands.map(({ name }) => name)).toEqual(["a"]);
    expect(warnings).toEqual([
      "/home/project/.gyre/commands/b.md is not used: it is a link that leads out of the project.",
    ]);
    rmSync(join(project, ".gyre/commands/a.md"));
    symlinkSync(join(root, "elsewhere/secret.md"), join(project, ".gyre/commands/a.md"));
    await expect(run("a")).rejects.toThrow("leads out of the project");
  });

  it("that is too long, or has a name that cannot be typed, is left out", async () => {
    write("config/commands/long.md", "x".repeat(MAX_COMMAND_BYTES + 1));
    write("config/commands/two words.md", "x");
    write("config/commands/notes.txt", "x");
    const { commands, warnings } = await found();
    expect(commands).toEqual([]);
    expect(warnings).toEqual([
      `/config/commands/long.md is not used: it has more than ${MAX_COMMAND_BYTES} bytes.`,
    ]);
  });

  it("that has no text says so when it is used", async () => {
    write("config/commands/a.md", "---\ndescription: x\n---\n");
    const { run } = await found();
    await expect(run("a")).rejects.toThrow("has no text to send");
  });
});

describe("what is typed behind a command", () => {
  it("is put into its places once, and nothing in it is a place", () => {
    expect(filledIn("$2 $1 $3. $@ $10 $ARGUMENTSX", "$1 b")).toBe("b $1 . $1 b $10 $ARGUMENTSX");
    fc.assert(
      fc.property(fc.string(), (rest) => {
        expect(filledIn("<$ARGUMENTS>", rest)).toBe(`<${rest}>`);
      }),
    );
  });
});

describe("skills and plugins", () => {
  it("have commands behind those of files", async () => {
    write("config/commands/a.md", "x");
    const registry = new CommandRegistry();
    registry.add({ name: "greet", about: "greets", run: (rest) => `Hello ${rest}` });
    const { commands, run, sent } = await found({
      skills: [{ name: "pdf", description: "Reads PDFs", folder: "/x" }],
      commands: registry,
    });
    expect(commands.map(({ name }) => name)).toEqual(["a", "skill:pdf", "greet"]);
    await run("skill:pdf", "read a.pdf");
    await run("skill:pdf");
    await run("greet", "Ada");
    expect(sent).toEqual(["Use the skill pdf: read a.pdf", "Use the skill pdf.", "Hello Ada"]);
  });
});
