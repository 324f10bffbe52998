import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { afterEach, beforeEach, expect, it } from "vitest";
import { AgentTexts, agentTextFolder } from "@gyre/coding/internal/guidance/agent-texts";
import { textIo } from "../../../testing/command-io.ts";
import { NO_COLORS } from "../terminal/theme.ts";
import type { Ui } from "../ui/ui.ts";
import { AgentOpener, readFirstSetup } from "./agent-opener.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-opener-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A user who chooses this key in each question, and sees warnings. */
function personWho(key: string, warnings: string[]): Ui {
  return {
    columns: 80,
    theme: NO_COLORS,
    say: () => {},
    warn: (text) => void warnings.push(text),
    show: () => {},
    choose: ({ choices }) => Promise.resolve(choices.find((each) => each.key === key)?.value),
  };
}

it.each(["o", "y", "n"])(
  "an error in settings is reported once, and nowhere else, after the answer %s",
  async (key) => {
    const work = join(folder, "work");
    for (const [at, name] of [
      [join(work, ".gyre"), "ours"],
      [join(folder, "config", "gyre"), "mine"],
    ] as const) {
      mkdirSync(at, { recursive: true });
      writeFileSync(join(at, "config.json"), JSON.stringify({ [name]: 1, mode: "plan" }));
    }
    const env = { XDG_CONFIG_HOME: join(folder, "config"), XDG_STATE_HOME: join(folder, "state") };
    const io = textIo({ cwd: work, env });
    const warnings: string[] = [];
    const opener = new AgentOpener({
      values: {},
      io,
      first: await readFirstSetup({}, io),
      ui: personWho(key, warnings),
      clock: systemClock,
      view: "terminal",
      conversation: () => undefined,
      askSecret: () => Promise.resolve(undefined),
      update: () => {},
      replay: () => {},
    });
    await opener.askForTrust();
    const named = warnings.map((text) => /"(ours|mine)"/.exec(text)?.[1]);
    expect(named).toEqual(key === "n" ? ["mine"] : ["mine", "ours"]);
    expect(io.err()).toBe("");
  },
);

it.each(["y", "n"])(
  "shows what an agent wrote for agents, and uses it only with %j, once",
  async (key) => {
    const work = join(folder, "work");
    mkdirSync(work, { recursive: true });
    writeFileSync(join(work, "AGENTS.md"), "One.\nTwo, by an agent.\n");
    const env = { XDG_CONFIG_HOME: join(folder, "config"), XDG_STATE_HOME: join(folder, "state") };
    const texts = new AgentTexts(agentTextFolder(env));
    const content = Buffer.from("One.\nTwo, by an agent.\n");
    texts.add(content, { path: join(work, "AGENTS.md"), before: "One.\nTwo.\n" });
    const io = textIo({ cwd: work, env });
    const shown: string[] = [];
    const titles: string[] = [];
    const ui: Ui = {
      ...personWho(key, []),
      show: (block) => {
        for (const row of block.rows(80))
          shown.push(
            row
              .map(({ text }) => text)
              .join("")
              .trim(),
          );
      },
      choose: ({ title, choices }) => {
        titles.push(title);
        return Promise.resolve(choices.find((each) => each.key === key)?.value);
      },
    };
    const opener = new AgentOpener({
      values: {},
      io,
      first: await readFirstSetup({}, io),
      ui,
      clock: systemClock,
      view: "terminal",
      conversation: () => undefined,
      askSecret: () => Promise.resolve(undefined),
      update: () => {},
      replay: () => {},
    });
    await opener.askAboutGuidance();
    expect(titles).toEqual(["Follow AGENTS.md as changed by an agent?"]);
    expect(shown.join("\n")).toMatch(/2 - Two\.\n2 \+ Two, by an agent\.$/);
    expect(texts.find(content, "AGENTS.md") === undefined).toBe(key === "y");
    await opener.askAboutGuidance();
    expect(titles).toHaveLength(key === "y" ? 1 : 2);
  },
);
