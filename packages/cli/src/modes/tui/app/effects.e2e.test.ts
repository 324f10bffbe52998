import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import type { Script } from "../../../testing/scripted-service.ts";
import {
  ask,
  decide,
  type Opened,
  type OpenOptions,
  terminalWorld,
} from "../../../testing/terminal-world.ts";

const { open } = terminalWorld();

function openAsking(script: Script, options: OpenOptions = {}): Promise<Opened> {
  return open(script, { ...options, args: ["--mode", "ask"] });
}

/** Ctrl+U: an answer is typed until it counts, and the last may come too late for the question. */
const CLEAR = "\u0015";

function isIdle(rows: readonly string[]): boolean {
  return !rows.some((row) => /Esc (?:interrupts|stops)/.test(row));
}

function shell(command: string): { say: { call: string; arguments: { command: string } }[] } {
  return { say: [{ call: "shell", arguments: { command } }] };
}

function readScreen(run: Pick<TerminalRun, "screen">): string {
  return run.screen().join("\n");
}

/** Whether a command in a layer has made a file. */
function hasMade(layers: string, name: string): boolean {
  if (!existsSync(layers)) return false;
  return readdirSync(layers).some((home) =>
    readdirSync(join(layers, home)).some((layer) =>
      existsSync(join(layers, home, layer, "up", name)),
    ),
  );
}

describe("a command that is asked about", { tags: ["bubblewrap"] }, () => {
  it("says why it does not go to the background, and goes on in its layer", async () => {
    const { run } = await openAsking(
      [shell(": > begun; until grep -q oolong tea.txt; do sleep 0.05; done"), { say: "Done." }],
      { files: { "tea.txt": "green\n" }, rows: 30 },
    );
    ask(run, "Wait for tea.");
    const layers = join(run.home, "state/gyre/tools/layers");
    await expect.poll(() => hasMade(layers, "begun")).toBe(true);
    run.press("ctrl+b");
    await run.until("The command runs in a layer first");
    writeFileSync(join(run.cwd, "tea.txt"), "oolong\n");
    await run.until("Keep what it did?");
    await decide(run, "n", "Done.");
  });

  it("has run in a layer: the question shows what it did, and an answer keeps it", async () => {
    const { run, service } = await openAsking(
      [shell("echo black >> tea.txt; echo new > cup; rm old"), { say: "Done." }],
      { files: { "tea.txt": "green\n", old: "old\n" }, rows: 30 },
    );
    const folder = join(run.home, "shop");
    ask(run, "Change it.");
    await run.until("Keep what it did?");
    const screen = readScreen(run).replace(/\(\d+\.\d s/, "(0.1 s");
    expect(screen).toContain("Ran in a layer (0.1 s, exit 0): 1 new, 1 changed, 1 deleted.");
    for (const line of [
      "- old: deleted",
      "+ cup: new",
      "~ tea.txt: changed",
      "+ black",
      "y keep it",
    ]) {
      expect(screen).toContain(line);
    }
    expect(readdirSync(folder).toSorted()).toEqual(["old", "tea.txt"]);
    await decide(run, "y", "Done.");
    expect(readdirSync(folder).toSorted()).toEqual(["cup", "tea.txt"]);
    expect(readFileSync(join(folder, "tea.txt"), "utf8")).toBe("green\nblack\n");
    expect(service.requests).toHaveLength(2);
  });

  it("is undone by /kept, with what it deleted", async () => {
    const { run } = await openAsking([shell("rm -r old; echo black > tea.txt"), { say: "Done." }], {
      files: { "tea.txt": "green\n", old: "old\n" },
      rows: 30,
    });
    const folder = join(run.home, "shop");
    ask(run, "Change it.");
    await run.until("Keep what it did?");
    await decide(run, "y", "Done.");
    await run.until(isIdle);
    expect(readdirSync(folder)).toEqual(["tea.txt"]);
    ask(run, `${CLEAR}/kept`);
    await run.until("Undo what which command changed?");
    run.press("enter");
    await run.until("Undone: 2 changes");
    expect(readFileSync(join(folder, "tea.txt"), "utf8")).toBe("green\n");
    expect(readFileSync(join(folder, "old"), "utf8")).toBe("old\n");
  });

  it("is taken back by /rewind as other calls are", async () => {
    const { run } = await openAsking([shell("echo black > tea.txt"), { say: "Done." }], {
      files: { "tea.txt": "green\n" },
      rows: 30,
    });
    ask(run, "Change it.");
    await run.until("Keep what it did?");
    await decide(run, "y", "Done.");
    await run.until(isIdle);
    ask(run, `${CLEAR}/rewind`);
    await run.until("Back to before which prompt?");
    run.press("enter");
    await run.until("conversation and files");
    run.press("enter");
    await run.until("1 file taken back");
    expect(readFileSync(join(run.home, "shop", "tea.txt"), "utf8")).toBe("green\n");
  });

  it("is asked about in mode auto with all that it destroyed", async () => {
    const { run } = await open([shell("rm -rf *"), { say: "I leave it." }], {
      args: ["--mode", "auto"],
      files: { "tea.txt": "green\n", "cup.txt": "blue\n" },
      rows: 30,
    });
    ask(run, "Empty it.");
    await run.until("Keep what it did?");
    expect(readScreen(run)).toContain("2 deleted");
    await decide(run, "n", "I leave it.");
    expect(readdirSync(join(run.home, "shop")).toSorted()).toEqual(["cup.txt", "tea.txt"]);
  });

  it("leaves nothing when it is discarded", async () => {
    const { run } = await openAsking([shell("rm tea.txt; echo x > x"), { say: "I leave it." }], {
      files: { "tea.txt": "green\n" },
    });
    ask(run, "Change it.");
    await run.until("Keep what it did?");
    await decide(run, "n", "I leave it.");
    expect(readdirSync(join(run.home, "shop"))).toEqual(["tea.txt"]);
  });

  it("is kept in part: each effect has a box", async () => {
    const { run } = await openAsking([shell("echo 1 > one; echo 2 > two"), { say: "Done." }]);
    ask(run, "Make two.");
    await run.until("Keep what it did?");
    await decide(run, "p", "Keep which? 2 of 2");
    run.type(" ");
    await run.until("Keep which? 1 of 2");
    run.press("enter");
    await run.until("Done.");
    expect(readdirSync(join(run.home, "shop"))).toEqual(["two"]);
  });

  it("shows a conflict with the user's edit first, and keeps the rest alone", async () => {
    // It ends when the user has changed the same file.
    const wait = ": > begun; until grep -q oolong tea.txt; do sleep 0.05; done";
    const { run } = await openAsking([shell(`${wait}; echo black > tea.txt`), { say: "Done." }], {
      files: { "tea.txt": "green\n" },
      rows: 30,
    });
    const folder = join(run.home, "shop");
    const layers = join(run.home, "state/gyre/tools/layers");
    ask(run, "Change it.");
    await expect.poll(() => hasMade(layers, "begun")).toBe(true);
    writeFileSync(join(folder, "tea.txt"), "oolong\n");
    await run.until("Keep what it did?");
    expect(readScreen(run)).toContain("! Conflict: tea.txt was changed meanwhile.");
    expect(readScreen(run)).not.toContain("y keep it");
    expect(readScreen(run)).toContain("y keep the other 1");
    await decide(run, "y", "Done.");
    expect(readFileSync(join(folder, "tea.txt"), "utf8")).toBe("oolong\n");
    expect(existsSync(join(folder, "begun"))).toBe(true);
  });

  it("asks nothing where it changed nothing", async () => {
    const { run } = await openAsking(
      [shell("wc -l tea.txt | tee /dev/null; true"), { say: "Done." }],
      {
        files: { "tea.txt": "green\n" },
      },
    );
    ask(run, "Count.");
    await run.until("Done.");
    expect(readScreen(run)).not.toContain("Keep what it did?");
  });

  it("is asked about before it runs, and says why, where its effects are not files alone", async () => {
    const { run } = await openAsking([shell("curl example.com"), { say: "I leave it." }]);
    ask(run, "Fetch it.");
    await run.until("Allow shell?");
    expect(readScreen(run)).toContain("needs the network.");
    await decide(run, "n", "I leave it.");
  });
});
