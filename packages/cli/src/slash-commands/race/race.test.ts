import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { call, type ScriptStep } from "@gyre/ai/testing";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { prepareRace } from "@gyre/coding/internal/race/race";
import { leaveRace, listRaces, racesFolder } from "@gyre/coding/internal/race/race-folder";
import { type ApprovalAnswer, rulesFor } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { FakeView } from "../../testing/slash-commands.ts";
import { workedHarness } from "../../testing/worked-harness.ts";
import type { SlashContext } from "../command-context.ts";

const world = workedHarness();
const read = (name: string): Promise<string> => world.read(name);

/** A call that has a file hold this. */
const write = (path: string, content: string) =>
  call("shell", { command: `printf %s '${content}' > ${path}` });

/** A repository with a commit and something that is not committed, and an agent with one prompt. */
async function repository(): Promise<Harness> {
  const env = { ...world.env, GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]): Buffer =>
    execFileSync("git", args, { cwd: world.work, env, stdio: ["ignore", "pipe", "ignore"] });
  git("init", "-q", "-b", "main");
  await writeFile(join(world.work, "tea.txt"), "green\n");
  git("add", "-A");
  git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "Tea");
  await writeFile(join(world.work, "mine.txt"), "by the user\n");
  return world.worked(["Begin"], [write("tea.txt", "black\n"), "Begun."]);
}

type More = Partial<SlashContext>;

/** The view of a program in which each rival has a script of its own, by its number. */
function view(
  harness: Harness,
  scripts: readonly (readonly ScriptStep[])[],
  options: { answers?: FakeView["answers"]; more?: More } = {},
): FakeView {
  const { answers = [], more = {} } = options;
  const openRival: SlashContext["openRival"] = (given) => {
    const number = Number(basename(dirname(given.cwd)));
    return world.openIn({ ...given, settings: SETTINGS }, scripts[number - 1] ?? []);
  };
  const shown = new FakeView({
    harness,
    env: world.env,
    cwd: world.work,
    more: { openRival, askFor: () => Promise.resolve(undefined), ...more },
  });
  shown.answers = answers;
  return shown;
}

const SETTINGS = { tools: ["write", "shell"], sandbox: "none", mode: "full" } as const;

/** The messages of a branch, in short. */
async function listTexts(harness: Harness, entry: number | null): Promise<string[]> {
  const context = await harness.session?.context(entry);
  return (context?.messages ?? []).flatMap((message) =>
    message.role === "user" || message.role === "assistant"
      ? [typeof message.content === "string" ? message.content : JSON.stringify(message.content)]
      : [],
  );
}

function listCopies(): string[] {
  const folder = racesFolder(world.env);
  return existsSync(folder) ? readdirSync(folder) : [];
}

describe("/race", () => {
  it("runs rivals in worktrees, compares them, and adopts one: files, messages, branches", async () => {
    const harness = await repository();
    const played = view(
      harness,
      [
        [write("tea.txt", "white\n"), "One: white."],
        [call("shell", { command: "cat mine.txt tea.txt > cup.txt; rm tea.txt" }), "Two: a cup."],
        ["Three: nothing."],
      ],
      { answers: ["1", "look at the others", "2", "adopt it"] },
    );
    await played.run("race 3 --test 'test -e cup.txt' Make tea");
    expect(played.output[0]).toBe("3 rivals, each in a worktree: “Make tea”.");
    const [table] = played.output.filter((each) => each.includes("| rival |"));
    expect(table).toMatch(/\| 1 .*\| done \| fail \| 1 \+1 -1 \|.*One: white\./);
    expect(table).toMatch(/\| 2 .*\| done \| pass \| 2 \+2 -1 \|.*Two: a cup\./);
    expect(table).toMatch(/\| 3 .*\| done \| fail \| 0 \|.*Three: nothing\./);
    const shown = played.output.join("\n");
    expect(shown).toContain("tea.txt\n- black\n+ white");
    expect(shown).toContain("cup.txt, new\n+ by the user\n+ black\ntea.txt, removed\n- black");
    expect(played.questions[2]?.choices[1]).toMatchObject({
      detail: expect.stringContaining("tests pass, 2 files +2 -1"),
    });
    // What it did is in the folder, and nothing else has changed.
    expect(await read("cup.txt")).toBe("by the user\nblack\n");
    await expect(read("tea.txt")).rejects.toThrow("ENOENT");
    expect(await read("mine.txt")).toBe("by the user\n");
    expect(listCopies()).toEqual([]);
    expect(execFileSync("git", ["worktree", "list"], { cwd: world.work }).toString()).not.toContain(
      "races",
    );
    // Its messages are where the conversation goes on; the others are branches with names.
    const [open] = played.opened;
    const entry = open && "entry" in open ? open.entry : null;
    const branch = await listTexts(harness, entry);
    expect(branch.filter((each) => each.includes("Make tea"))).toHaveLength(1);
    expect(branch.at(-1)).toContain("Two: a cup.");
    expect(branch[0]).toContain("Begin");
    const labels = [];
    for (const id of harness.session?.findIds("label") ?? []) {
      const label = await harness.session?.read(id);
      if (label?.type === "label") labels.push(label);
    }
    expect(labels.map(({ label }) => label?.slice(0, 7))).toEqual([
      "race 1 ",
      "race 2 ",
      "race 3 ",
    ]);
    // A later jump to one that was not adopted has its files, and the way back.
    await harness.session?.branch(entry);
    const history = harness.fileHistory;
    const other = { after: labels[0]?.entry ?? 0 };
    await history?.apply(await history.plan(other), { withConflicts: false });
    expect(await read("tea.txt")).toBe("white\n");
    await expect(read("cup.txt")).rejects.toThrow("ENOENT");
    const undo = new FakeView({ harness, env: world.env, cwd: world.work });
    undo.answers = ["(the way to another place)", "files only"];
    await undo.run("rewind");
    expect(await read("cup.txt")).toBe("by the user\nblack\n");
    const whole = new FakeView({ harness, env: world.env, cwd: world.work });
    whole.answers = [{ at: 2 }, "files only"];
    await whole.run("rewind");
    expect(await read("tea.txt")).toBe("black\n");
    await expect(read("cup.txt")).rejects.toThrow("ENOENT");
  });

  it("adopts none: nothing changes but the tree", async () => {
    const harness = await repository();
    const leaf = harness.session?.leaf;
    const before = await listTexts(harness, leaf ?? null);
    const scripts = [[write("tea.txt", "a")], [write("tea.txt", "b"), "B."]];
    const played = view(harness, scripts, { answers: ["adopt none"] });
    await played.run("race 2 Make tea");
    expect(played.opened).toEqual([]);
    expect(played.output.at(-1)).toBe(
      "None is adopted: they are branches of /tree, with their files.",
    );
    expect(await read("tea.txt")).toBe("black\n");
    expect(listCopies()).toEqual([]);
    expect(harness.session?.leaf).toBe(leaf);
    expect(await listTexts(harness, harness.session?.leaf ?? null)).toEqual(before);
  });

  it("refuses to replace what the user has edited meanwhile", async () => {
    const harness = await repository();
    const scripts = [[call("shell", { command: "echo w > tea.txt; echo n > new.txt" }), "Done."]];
    const answers = ["1", "adopt it", "cancel", "1", "adopt it", "leave them"];
    const played = view(harness, scripts, { answers });
    // The user edits a file of the folder when the rival has ended.
    await played.run(`race 1 --test 'echo mine > ${join(world.work, "tea.txt")}' Make tea`);
    expect(played.questions[2]).toMatchObject({
      title: "1 file may hold changes from outside of this session",
      about: ["! tea.txt: it was changed outside of this session since"],
    });
    expect(await read("tea.txt")).toBe("mine\n");
    expect(await read("new.txt")).toBe("n\n");
    expect(played.output.join("\n")).toContain("Left as they are: `tea.txt`.");
  });

  it("asks one question at a time, says which rival asks, and shares what is allowed from then on", async () => {
    const harness = await repository();
    const asked: string[] = [];
    let isAsking = false;
    const askFor: SlashContext["askFor"] = async (request, asker) => {
      expect(isAsking).toBe(false);
      isAsking = true;
      asked.push(`${asker.name} ${request.tool}`);
      expect(asker.folder).toContain(racesFolder(world.env));
      await new Promise((settle) => setImmediate(settle));
      isAsking = false;
      const [rule = ""] = (await rulesFor(request)) ?? [];
      return { allow: "always", rule };
    };
    const step = call("shell", { command: "touch a.txt" });
    const openRival: SlashContext["openRival"] = (given) =>
      world.openIn({ ...given, settings: { ...SETTINGS, mode: "ask" } }, [step, "Done."]);
    const played = view(harness, [], { answers: ["adopt none"], more: { openRival, askFor } });
    await played.run("race 3 Make tea");
    expect(asked).toEqual([expect.stringMatching(/^rival [123] \(.+\) shell$/)]);
    expect(harness.givenRules).toMatchObject([{ scope: "session" }]);
    const [table = ""] = played.output.filter((each) => each.includes("| rival |"));
    expect(table.match(/\| done \| 1 \+0 -0 \|/g)).toHaveLength(3);
  });

  it("is stopped as a whole by a question that is left, and what was done can be looked at", async () => {
    const harness = await repository();
    const step = call("shell", { command: "echo a > a.txt" });
    const openRival: SlashContext["openRival"] = (given) =>
      world.openIn({ ...given, settings: { ...SETTINGS, mode: "ask" } }, [step, "Done."]);
    const askFor = (): Promise<ApprovalAnswer> =>
      Promise.resolve({ allow: false, reason: "interrupted" });
    const played = view(harness, [], { answers: ["adopt none"], more: { openRival, askFor } });
    await played.run("race 2 Make tea");
    const [table = ""] = played.output.filter((each) => each.includes("| rival |"));
    expect(table.match(/stopped/g)).toHaveLength(2);
    expect(listCopies()).toEqual([]);
  });

  it("is stopped as a whole by its signal", async () => {
    const harness = await repository();
    const steps: ScriptStep[] = [call("shell", { command: "sleep 600" }), "Done."];
    const played = view(harness, [steps, steps], { answers: ["adopt none"] });
    const running = played.run("race 2 Make tea");
    await expect.poll(() => listCopies().length, { interval: 5 }).toBe(1);
    played.stop.abort();
    await running;
    const [table = ""] = played.output.filter((each) => each.includes("| rival |"));
    expect(table.match(/stopped/g)).toHaveLength(2);
    expect(listCopies()).toEqual([]);
  });

  it("goes on where one of the rivals cannot begin", async () => {
    const harness = await repository();
    const openRival: SlashContext["openRival"] = (given) =>
      given.cwd.includes("/1/")
        ? Promise.reject(new Error("There is no key."))
        : world.openIn({ ...given, settings: SETTINGS }, ["Here."]);
    const answers = ["1", "adopt it", "2", "adopt it"];
    const played = view(harness, [], { answers, more: { openRival } });
    await played.run("race 2 Say it");
    const [table = ""] = played.output.filter((each) => each.includes("| rival |"));
    expect(table).toMatch(/\| 1 \| failed \| 0 \|.*There is no key\./);
    expect(played.warned).toContain("It was never asked: there is nothing to adopt.");
    const [open] = played.opened;
    expect(
      (await listTexts(harness, open && "entry" in open ? open.entry : null)).at(-1),
    ).toContain("Here.");
  });

  it("races the last prompt again from before it, with the files of that place", async () => {
    const harness = await repository();
    const scripts = [[call("shell", { command: "cat tea.txt > was.txt" }), "Again."]];
    const played = view(harness, scripts, { answers: ["1", "adopt it"] });
    await played.run("race 1");
    // It began with the green tea of before the prompt.
    expect(await read("was.txt")).toBe("green\n");
    expect(await read("tea.txt")).toBe("green\n");
    const [open] = played.opened;
    const branch = await listTexts(harness, open && "entry" in open ? open.entry : null);
    expect(branch.filter((each) => each.includes("Begin"))).toHaveLength(1);
    expect(branch.at(-1)).toContain("Again.");
  });

  it("gives each rival its share of what the prompt may cost", async () => {
    const harness = await repository();
    const limits: unknown[] = [];
    const openRival: SlashContext["openRival"] = (given) => {
      limits.push(given.limits);
      // The scripted model has no price.
      return world.openIn({ ...given, limits: {}, settings: SETTINGS }, ["Here."]);
    };
    const played = new FakeView({
      ...{ harness, env: world.env, cwd: world.work, settings: { maxCost: 3, raceTest: "true" } },
      more: { openRival, askFor: () => Promise.resolve(undefined) },
    });
    await played.run("race 3 Say it");
    const share = { maxCostUsd: 1 };
    expect(limits).toEqual([share, share, share]);
    // The command of the settings has tested them.
    expect(played.output.join("\n").match(/\| pass \|/g)).toHaveLength(3);
  });

  it("works in a copy where there is no repository, and as the first thing of a conversation", async () => {
    await writeFile(join(world.work, "tea.txt"), "green\n");
    const harness = await world.worked([], []);
    const scripts = [[write("tea.txt", "white\n"), "White."]];
    const played = view(harness, scripts, { answers: ["1", "adopt it"] });
    await played.run("race 1 Make it white");
    expect(played.output[0]).toBe("1 rival, in a copy of the folder: “Make it white”.");
    expect(await read("tea.txt")).toBe("white\n");
  });

  it("keeps the copy of one that is adopted and has what cannot be kept", async () => {
    const harness = await repository();
    const scripts = [[call("shell", { command: "head -c 2000000 /dev/zero > large" }), "Large."]];
    const played = view(harness, scripts, { answers: ["1", "adopt it"] });
    await played.run("race 1 Make it large");
    expect(played.warned).toContain("large was not kept: it has 1.9 MB; 1 MB is kept.");
    const [, folder = ""] =
      /What was not kept is in `([^`]+)`/.exec(played.output.join("\n")) ?? [];
    expect((await readFile(join(folder, "large"))).length).toBe(2_000_000);
    expect(await listRaces(world.env)).toMatchObject({
      races: [],
      broken: [dirname(dirname(folder))],
    });
  });

  it("cannot be used where no person can be asked", async () => {
    const harness = await repository();
    const played = new FakeView({ harness, env: world.env, cwd: world.work });
    await expect(played.run("race 2 x")).rejects.toThrow("/race works in the terminal");
  });

  it("leaves nothing where the copies cannot be made", async () => {
    const harness = await repository();
    const races = racesFolder(world.env);
    await mkdir(dirname(races), { recursive: true });
    await writeFile(races, "in the way");
    await expect(view(harness, []).run("race 2 x")).rejects.toThrow(/EEXIST|ENOTDIR/);
    await rm(races);
  });
});

describe("a race that was cut off", () => {
  /** As a process leaves it that was killed when its first rival had worked. */
  async function cutOff(harness: Harness): Promise<void> {
    const options = { harness, cwd: world.work, env: world.env, prompt: "Make tea" };
    const race = await prepareRace({ ...options, models: [undefined, undefined] });
    const steps = [write("tea.txt", "white\n"), "White."];
    for (const rival of race.rivals) {
      await rival.run({
        prompt: "Make tea",
        test: undefined,
        limits: {},
        open: (place) => world.openIn({ ...place, settings: SETTINGS }, steps),
        ask: () => Promise.resolve({ allow: false }),
        now: () => 0,
        onChange: () => {},
        signal: rival.number === 1 ? new AbortController().signal : AbortSignal.abort(),
      });
    }
    await leaveRace(race.stored);
  }

  it("is found, and one of its rivals can be adopted", async () => {
    const harness = await repository();
    await cutOff(harness);
    expect(listCopies()).toHaveLength(1);
    const played = view(harness, [], { answers: ["compare", "1", "adopt it"] });
    await played.run("race");
    expect(played.questions[0]?.title).toContain("A race was cut off: “Make tea”");
    const [table = ""] = played.output.filter((each) => each.includes("| rival |"));
    expect(table.match(/cut off/g)).toHaveLength(2);
    expect(await read("tea.txt")).toBe("white\n");
    expect(listCopies()).toEqual([]);
  });

  it("can be removed, also from another session", async () => {
    const harness = await repository();
    await cutOff(harness);
    const other = await world.worked(["Hi"], ["Hello."]);
    const played = view(other, [], { answers: ["remove the copies"] });
    await played.run("race");
    expect(played.questions[0]?.choices.map(({ label }) => label)).toEqual([
      "remove the copies, and what they did",
      "leave it",
    ]);
    expect(listCopies()).toEqual([]);
    await expect(view(other, []).run("race")).rejects.toThrow("/race [NUMBER]");
  });

  it("is no branch twice, where it was cut off while branches were made", async () => {
    const harness = await repository();
    await cutOff(harness);
    const [race] = (await listRaces(world.env)).races;
    const { importRivals } = await import("@gyre/coding/internal/race/finish");
    if (race) await importRivals(race, harness, world.env, () => "race");
    const count = harness.session?.findIds("message").length;
    const again = (await listRaces(world.env)).races[0];
    if (again) await importRivals(again, harness, world.env, () => "race");
    expect(harness.session?.findIds("message").length).toBe(count);
  });
});
