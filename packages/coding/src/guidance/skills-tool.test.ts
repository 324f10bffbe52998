import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Skill } from "./skills.ts";
import { MAX_SKILL_BYTES, skillTool } from "./skills-tool.ts";

let world: string;

beforeEach(() => {
  world = mkdtempSync(join(realpathSync(tmpdir()), "gyre-skill-tool-"));
  put("fox/SKILL.md", "---\nname: fox\ndescription: Makes a fox.\n---\n\n# Foxes\n\nRun it.\n");
});
afterEach(() => rmSync(world, { recursive: true, force: true }));

function put(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(join(world, path)), { recursive: true });
  writeFileSync(join(world, path), text);
}

const fox = (): Skill => ({ name: "fox", description: "Makes a fox.", folder: join(world, "fox") });

async function call(args: Record<string, unknown>, skills = [fox()]): Promise<unknown> {
  const { signal } = new AbortController();
  const host = { call: () => Promise.reject(new Error("Calls nothing.")) };
  return skillTool(skills, join(world, "work")).execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
}

describe("the tool for skills", () => {
  it("gives the text of one, with where it is and what it needs", async () => {
    put("fox/scripts/make.py", "print()");
    put("fox/scripts/deep/er/est/a.txt", "");
    put("fox/forms.md", "");
    put("fox/.hidden", "");
    const skill = { ...fox(), compatibility: "Needs python3" };
    expect(await call({ name: "fox" }, [skill])).toBe(
      [
        `Skill "fox" in ${join(world, "fox")}`,
        "It needs: Needs python3",
        "Its files: forms.md, scripts/deep/er/, scripts/make.py",
        "",
        "# Foxes",
        "",
        "Run it.",
      ].join("\n"),
    );
  });

  it("gives a file of one", async () => {
    put("fox/docs/forms.md", "Forms.\u200B\n");
    expect(await call({ name: "fox", file: "docs/forms.md" })).toBe("Forms.\n");
  });

  it("lists all without a name", async () => {
    expect(await call({})).toBe("- fox: Makes a fox.");
    expect(await call({ name: "" }, [])).toBe("There are no skills.");
  });

  it("says which there may be", async () => {
    await expect(call({ name: "fxo" })).rejects.toThrow(
      'There is no skill "fxo". Did you mean fox?',
    );
    await expect(call({ name: "whale" })).rejects.toThrow("Without a name all are listed.");
    await expect(call({ name: "fox", file: "form.md" })).rejects.toThrow("form.md");
  });

  it("gives nothing from outside of the folder", async () => {
    put("secret.txt", "A secret.");
    symlinkSync("../secret.txt", join(world, "fox/link.txt"));
    symlinkSync("..", join(world, "fox/up"));
    for (const file of ["../secret.txt", join(world, "secret.txt"), "link.txt", "up/secret.txt"]) {
      await expect(call({ name: "fox", file })).rejects.toThrow(/outside|leads out/);
    }
  });

  it("cuts what is long, and says so", async () => {
    put("fox/long.md", "0123456789\n".repeat(10_000));
    const text = String(await call({ name: "fox", file: "long.md" }));
    expect(text).toMatch(/0123456789\n\[Cut: long\.md has 110000 bytes, 51200 are shown\.\]$/);
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_SKILL_BYTES + 100);
  });

  it("gives no file that is not text", async () => {
    put("fox/logo.png", Uint8Array.of(0x89, 0xff, 0x00));
    await expect(call({ name: "fox", file: "logo.png" })).rejects.toThrow(
      '"logo.png" is not text.',
    );
  });

  it("says what a call would read, from the folder that is worked in where it is there", async () => {
    const tool = skillTool([fox()], world);
    expect(await tool.access({ name: "fox" })).toMatchObject({
      kind: "read",
      targets: ["fox/SKILL.md"],
    });
    expect(await tool.access({ name: "fox", file: "a.md" })).toMatchObject({
      targets: ["fox/a.md"],
    });
    expect(await tool.access({})).toMatchObject({ kind: "none" });
    const outside = skillTool([fox()], join(world, "work"));
    expect(await outside.access({ name: "fox" })).toMatchObject({
      targets: [join(world, "fox/SKILL.md")],
    });
    expect(() => tool.access({ name: "bear" })).toThrow('There is no skill "bear".');
  });
});
