import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "@gyre/ai";
import { call, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { createSession } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AgentHarness } from "../harness/agent-harness.ts";
import { openHarness } from "../harness/harness.ts";
import type { HarnessOptions } from "../harness/types.ts";

let base = "";
let harness: AgentHarness | undefined;
const at = (path: string): string => join(base, path);

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-add-dir-")));
  for (const name of ["home", "work", "lib", "other"]) mkdirSync(at(name));
  writeFileSync(at("lib/a.txt"), "before\n");
});

afterEach(async () => {
  await harness?.close();
  harness = undefined;
  rmSync(base, { recursive: true, force: true });
});

async function open(
  settings: HarnessOptions["settings"],
  script: ScriptStep[] = ["Hello."],
  more: Partial<HarnessOptions> = {},
  seen: (context: Context) => void = () => {},
): Promise<AgentHarness> {
  const client = scriptedModel(
    script.map((step): ScriptStep => (context, options, index) => {
      seen(context);
      return typeof step === "function" ? step(context, options, index) : step;
    }),
  );
  harness = await openHarness({
    settings: {
      tools: ["read", "write", "edit", "shell"],
      sandbox: "none",
      mode: "full",
      ...settings,
    },
    cwd: at("work"),
    env: { XDG_STATE_HOME: at("state"), HOME: at("home"), PATH: process.env["PATH"] },
    approvals: "deny",
    warn: () => {},
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(client.model),
      find: () => Promise.resolve(client.model),
      list: () => Promise.resolve([client.model]),
    },
    ...more,
  });
  return harness;
}

const listTexts = ({ messages }: Context): string[] =>
  messages.flatMap(({ content }) => (typeof content === "string" ? [content] : []));

describe("further folders", () => {
  it("are read and changed, and the model gets to know of them first", async () => {
    const texts: string[] = [];
    const opened = await open(
      { addDirs: [at("lib")], mode: "auto-edit" },
      [call("write", { path: at("lib/new.txt"), content: "new\n" }), "Done."],
      {},
      (context) => texts.push(...listTexts(context)),
    );
    await opened.prompt({ text: "Go" });
    expect(readFileSync(at("lib/new.txt"), "utf8")).toBe("new\n");
    expect(texts[0]).toContain(
      `Folder: ${at("work")}\nFurther folders of the workspace: ${at("lib")}\n`,
    );
  });

  it("that are wrong are an error of the options", async () => {
    await expect(open({ addDirs: [at("none")] })).rejects.toThrow(
      `${at("none")} cannot be added: there is no such folder.`,
    );
  });

  it("are added to a session that goes on, of which the model is notified", async () => {
    const texts: string[] = [];
    const opened = await open({}, ["One.", "Two."], {}, (context) =>
      texts.push(...listTexts(context)),
    );
    await opened.prompt({ text: "Go" });
    expect(await opened.addFolder("../lib")).toBe(at("lib"));
    expect(await opened.addFolder(at("lib"))).toBeUndefined();
    await expect(opened.addFolder("~")).rejects.toThrow("your home folder is in it");
    await opened.prompt({ text: "On" });
    expect(texts.join("\n")).toContain(
      `The user has added the folder ${at("lib")} to the workspace`,
    );
  });

  it("of a session of a server are those that it may work in", async () => {
    const ceilings = {
      mode: "full",
      roots: [at("work"), at("lib")],
      unsandboxed: true,
      secret: [],
    } as const;
    const opened = await open({ addDirs: [at("lib"), at("other")] }, ["Hello."], { ceilings });
    expect(opened.toolset.env.workspace.folders).toEqual([at("lib")]);
    await expect(opened.addFolder(at("other"))).rejects.toThrow(
      "is not a folder for sessions here",
    );
  });

  it("are put back by a rewind: what tools and commands did there, and not what was there", async () => {
    const session = await createSession(at("s.jsonl"), { cwd: at("work") });
    const opened = await open(
      { addDirs: [at("lib")] },
      [
        call("shell", {
          command: "echo after > ../lib/a.txt; echo new > ../lib/b.txt; echo w > w.txt",
        }),
        call("write", { path: "../other/c.txt", content: "c\n" }),
        "Done.",
        call("shell", { command: "echo x > ../other/d.txt; rm ../other/old.txt" }),
        "Done.",
      ],
      { session, fileHistory: true },
    );
    await opened.prompt({ text: "Go" });
    expect(readFileSync(at("lib/a.txt"), "utf8")).toBe("after\n");
    expect(existsSync(at("other/c.txt"))).toBe(false);
    writeFileSync(at("other/old.txt"), "old\n");
    await opened.addFolder("../other");
    await opened.prompt({ text: "On" });
    const plan = await opened.fileHistory?.plan({ after: null });
    if (!plan) throw new Error("There is no history.");
    expect(plan.steps.map(({ path }) => path).sort()).toEqual([
      "../lib/a.txt",
      "../lib/b.txt",
      "../other/d.txt",
      "../other/old.txt",
      "w.txt",
    ]);
    await opened.fileHistory?.apply(plan, { withConflicts: false });
    expect(readFileSync(at("lib/a.txt"), "utf8")).toBe("before\n");
    expect(existsSync(at("lib/b.txt"))).toBe(false);
    expect(existsSync(at("other/d.txt"))).toBe(false);
    expect(readFileSync(at("other/old.txt"), "utf8")).toBe("old\n");
    await harness?.close();
    harness = undefined;
    await session.close();
  });
});

it("a read outside is denied in a run without a person, and the denial names the option", async () => {
  const texts: string[] = [];
  const opened = await open(
    {},
    [call("read", { path: "../lib/a.txt" }), "Done."],
    {},
    ({ messages }) => texts.push(JSON.stringify(messages)),
  );
  await opened.prompt({ text: "Go" });
  expect(texts.join("\n")).toContain(
    "is outside of the workspace. `--add-dir FOLDER` adds a folder",
  );
  expect(opened.denied).toMatchObject([{ tool: "read", rule: `read(${at("lib/a.txt")})` }]);
});
