import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TEST_KEY } from "../packages/cli/src/testing/program.ts";
import { type ActionWorld, actionWorld, commentEvent, readMarked } from "./testing/action-world.ts";
import { makeComment, REPOSITORY, TOKEN } from "./testing/fake-github.ts";

const { open } = actionWorld();

const WRITE_GREEN = {
  say: [{ call: "write", arguments: { path: "green.txt", content: "green\n" } }],
};
const DONE = { say: "Green tea is there now." };

function makeBranch({ github }: ActionWorld, name: string): void {
  github.git("branch", name, "main");
  github.pull["head"] = { ref: name, repo: { full_name: REPOSITORY } };
}

function listBranches({ github }: ActionWorld): string[] {
  return github.git("for-each-ref", "--format=%(refname:short)", "refs/heads").trim().split("\n");
}

describe("a comment with the trigger", () => {
  it("gets one comment, and a pull request with what was changed", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    const { github } = world;
    const ended = await world.run(commentEvent(world, "@gyre please do it"));
    const { code, log, outputs, summary } = ended;
    expect(code, log).toBe(0);
    expect(outputs).toMatchObject({
      conclusion: "success",
      text: "Green tea is there now.",
      branch: "gyre/issue-7-1-1",
      "pull-request": "https://github.example/tea/shop/pull/8",
      turns: "2",
    });
    expect(github.git("show", "gyre/issue-7-1-1:green.txt")).toBe("green\n");
    expect(github.git("rev-parse", "gyre/issue-7-1-1").trim()).toBe(outputs["commit"]);
    expect(github.git("rev-parse", "gyre/issue-7-1-1^")).toBe(github.git("rev-parse", "main"));
    expect(github.git("log", "-1", "--format=%an%n%B", "gyre/issue-7-1-1")).toContain(
      "Co-authored-by: ann <11+ann@users.noreply.github.com>",
    );
    expect(github.pulls).toEqual([
      expect.objectContaining({ head: "gyre/issue-7-1-1", base: "main", title: "Add green tea" }),
    ]);
    expect(String(github.pulls[0]?.["body"])).toContain("Closes #7");
    const [, answer, ...more] = github.comments;
    expect(more).toEqual([]);
    expect(answer?.body).toContain("Green tea is there now.");
    expect(answer?.body).toContain("https://github.example/tea/shop/pull/8");
    expect(outputs["comment"]).toBe(answer?.html_url);
    expect(summary).toContain("Green tea is there now.");
    expect(github.reactions).toEqual(["/issues/comments/50/reactions"]);
    expect(
      JSON.parse(readFileSync(outputs["session-file"] ?? "", "utf8").split("\n")[0] ?? ""),
    ).toBeTypeOf("object");
    const [request] = world.service.requests;
    expect(request?.text).toContain("@gyre please do it");
    expect(readMarked(world, "thread.md")).toContain("We sell black tea alone.");
  });

  it("shows in that comment what it does, while it does it", async () => {
    let shown = "";
    const world: ActionWorld = await open(async ({ nth }) => {
      if (nth === 0) return { say: [{ call: "read", arguments: { path: "tea.txt" } }] };
      const isShown = (): boolean =>
        world.github.comments[1]?.body.includes("`read tea.txt`") ?? false;
      await world.github.until(isShown);
      shown = world.github.comments[1]?.body ?? "";
      return { say: "Black." };
    });
    const { code, log } = await world.run(commentEvent(world, "@gyre which tea?"));
    expect(code, log).toBe(0);
    expect(shown).toContain("gyre is working");
    expect(world.github.comments).toHaveLength(2);
    expect(world.github.comments[1]?.body).toContain("Black.");
  });

  it("opens nothing where nothing has changed", async () => {
    const world = await open([{ say: "Nothing to do." }]);
    const { code, log, outputs } = await world.run(commentEvent(world, "@gyre look"));
    expect(code, log).toBe(0);
    expect(outputs).toMatchObject({ branch: "", commit: "", "pull-request": "" });
    expect(listBranches(world)).toEqual(["main"]);
    expect(world.github.pulls).toEqual([]);
  });

  it("leaves what was changed before it out of its commit", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    writeFileSync(join(world.workspace, "built.txt"), "by an earlier step");
    writeFileSync(join(world.workspace, "tea.txt"), "changed by an earlier step");
    await world.run(commentEvent(world, "@gyre please do it"));
    const changed = world.github.git("diff", "--name-only", "main", "gyre/issue-7-1-1");
    expect(changed).toBe("green.txt\n");
  });

  it("only pushes a branch where that is asked for, and nothing where nothing is", async () => {
    const world = await open([WRITE_GREEN, DONE, WRITE_GREEN, DONE]);
    const first = await world.run(commentEvent(world, "@gyre do it"), {
      inputs: { publish: "none" },
    });
    expect(first.outputs).toMatchObject({ conclusion: "success", branch: "" });
    execFileSync("git", ["clean", "-fdq"], { cwd: world.workspace });
    const second = await world.run(commentEvent(world, "@gyre do it", { id: 51 }), {
      inputs: { publish: "branch" },
    });
    expect(second.outputs).toMatchObject({ branch: "gyre/issue-7-2-1", "pull-request": "" });
    expect(listBranches(world)).toEqual(["gyre/issue-7-2-1", "main"]);
    expect(world.github.pulls).toEqual([]);
    expect(world.github.comments.at(-1)?.body).toContain("/compare/main...gyre%2Fissue-7-2-1");
  });

  it("links to the comparison where workflows may not open pull requests", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    world.github.faults.push({ match: /^POST .*\/pulls$/, status: 403 });
    const { code, log } = await world.run(commentEvent(world, "@gyre do it"));
    expect(code, log).toBe(0);
    expect(log).toContain("::warning::The pull request could not be opened.");
    expect(world.github.comments[1]?.body).toContain("[open a pull request]");
  });

  it("changes the comment of the first attempt when the job is run again", async () => {
    const world = await open([{ status: 400, message: "Not today." }, { say: "Black." }]);
    const event = commentEvent(world, "@gyre which tea?");
    const first = await world.run(event);
    expect(first.code).toBe(1);
    expect(first.outputs["conclusion"]).toBe("failure");
    expect(world.github.comments[1]?.body).toContain("Not today.");
    const second = await world.run(event);
    expect(second.code, second.log).toBe(0);
    expect(world.github.comments).toHaveLength(2);
    expect(world.github.comments[1]?.body).toContain("Black.");
    expect(world.github.comments[1]?.body).not.toContain("Not today.");
  });

  it("does not touch a comment of someone who wrote the mark of its own", async () => {
    const world = await open([{ say: "Black." }]);
    const event = commentEvent(world, "@gyre which tea?");
    const forged = makeComment(60, "zoe", "Hi <!-- gyre-action comment-50 -->");
    world.github.comments.push(forged);
    await world.run(event);
    expect(world.github.comments[1]?.body).toBe("Hi <!-- gyre-action comment-50 -->");
    expect(world.github.comments[2]?.body).toContain("Black.");
  });

  it("two at once get an answer and a branch each", async () => {
    const world = await open(({ body }) => {
      const text = JSON.stringify(body["messages"]);
      const name = text.includes('"text":"@gyre make-oolong"') ? "oolong" : "mint";
      if (text.includes("tool_result")) return { say: `There is ${name}.` };
      return { say: [{ call: "write", arguments: { path: `${name}.txt`, content: name } }] };
    });
    const other = join(world.folder, "other");
    execFileSync("git", ["clone", "-q", world.github.remote, other]);
    const ends = await Promise.all([
      world.run(commentEvent(world, "@gyre make-oolong")),
      world.run(commentEvent(world, "@gyre make-peppermint", { id: 51 }), {
        env: { GITHUB_WORKSPACE: other },
      }),
    ]);
    for (const { code, log } of ends) expect(code, log).toBe(0);
    expect(world.github.git("show", "gyre/issue-7-1-1:oolong.txt")).toBe("oolong");
    expect(world.github.git("show", "gyre/issue-7-2-1:mint.txt")).toBe("mint");
    const answers = world.github.comments.filter(({ user }) => user.type === "Bot");
    const texts = answers.map(({ body }) => /There is \w+/.exec(body)?.[0] ?? "");
    expect(new Set(texts)).toEqual(new Set(["There is mint", "There is oolong"]));
    expect(answers).toHaveLength(2);
  });

  it("ends with a word in the comment when the job is canceled", async () => {
    const world = await open([{ silent: true }]);
    const { child, end } = world.start(commentEvent(world, "@gyre think long"));
    await world.service.asked(0);
    child.kill("SIGTERM");
    const { code, outputs } = await end;
    expect(code).toBe(1);
    expect(outputs["conclusion"]).toBe("failure");
    expect(world.github.comments[1]?.body).toContain("The run was canceled.");
  });
});

describe("a pull request", () => {
  it("gets the changes on its own branch, and its diff is read", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    makeBranch(world, "green");
    const event = commentEvent(world, "@gyre go on", { isPull: true });
    const { code, log, outputs } = await world.run(event);
    expect(code, log).toBe(0);
    expect(outputs).toMatchObject({ branch: "green", "pull-request": "" });
    expect(world.github.git("show", "green:green.txt")).toBe("green\n");
    expect(world.github.pulls).toEqual([]);
    expect(readMarked(world, "diff.patch")).toContain("diff --git a/tea.txt b/tea.txt");
  });

  it("is answered from a shallow checkout of another commit", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    makeBranch(world, "green");
    const shallow = join(world.folder, "shallow");
    const address = `file://${world.github.remote}`;
    execFileSync("git", ["clone", "-q", "--depth=1", address, shallow]);
    const event = commentEvent(world, "@gyre go on", { isPull: true });
    const { code, log } = await world.run(event, { env: { GITHUB_WORKSPACE: shallow } });
    expect(code, log).toBe(0);
    expect(world.github.git("show", "green:green.txt")).toBe("green\n");
  });

  it("whose branch has changed in the meantime gets a branch beside it", async () => {
    const world: ActionWorld = await open(({ nth }) => {
      if (nth === 0) return WRITE_GREEN;
      const { github } = world;
      const commit = ["-c", "user.name=Bo", "-c", "user.email=bo@example.org", "commit-tree"];
      const made = github.git(...commit, "green^{tree}", "-p", "green", "-m", "Bo").trim();
      github.git("update-ref", "refs/heads/green", made);
      return DONE;
    });
    makeBranch(world, "green");
    const { outputs, log } = await world.run(commentEvent(world, "@gyre go on", { isPull: true }));
    expect(outputs["branch"], log).toBe("gyre/pull-7-1-1");
    expect(world.github.git("log", "-1", "--format=%s", "green")).toBe("Bo\n");
    expect(world.github.pulls).toEqual([
      expect.objectContaining({ head: "gyre/pull-7-1-1", base: "green" }),
    ]);
    expect(world.github.comments[1]?.body).toContain("has changed in the meantime");
  });

  it("of a fork is not worked on: its code would run beside the keys", async () => {
    const world = await open([]);
    world.github.pull["head"] = { ref: "main", repo: { full_name: "zoe/shop" } };
    const { code, log } = await world.run(commentEvent(world, "@gyre go on", { isPull: true }));
    expect(code).toBe(1);
    expect(log).toContain("in a fork");
    expect(world.service.requests).toEqual([]);
    expect(world.github.comments[1]?.body).toContain("in a fork");
  });

  it("gets the answer to a comment of a review below that comment", async () => {
    const world = await open([{ say: "Because it is black." }]);
    const comment = { ...makeComment(90, "ann", "@gyre why?"), path: "tea.txt", line: 1 };
    world.github.reviewComments.push(comment);
    const { code, log } = await world.run({
      name: "pull_request_review_comment",
      body: {
        action: "created",
        comment,
        pull_request: { number: 7 },
        sender: { login: "ann", type: "User", id: 11 },
      },
    });
    expect(code, log).toBe(0);
    expect(world.github.comments).toEqual([]);
    const [, answer, ...more] = world.github.reviewComments;
    expect(more).toEqual([]);
    expect(answer).toMatchObject({ repliesTo: 90 });
    expect(answer?.body).toContain("Because it is black.");
    expect(readMarked(world, "thread.md")).toContain("on tea.txt:1");
  });

  it.each(["pull_request_target", "workflow_run"])("is not answered for %s", async (name) => {
    const world = await open([]);
    const { code, outputs } = await world.run(
      {
        name,
        body: { action: "opened", pull_request: { number: 7 }, sender: { login: "ann" } },
      },
      { inputs: { prompt: "Review it." } },
    );
    expect({ code, outputs }).toEqual({ code: 0, outputs: { conclusion: "skipped" } });
    expect(world.github.requests).toEqual([]);
  });
});

describe("who is answered", () => {
  it.each([
    ["has no write access", { login: "zoe" }, "@zoe has no write access to tea/shop."],
    ["has read access alone", { login: "rae" }, "@rae has no write access to tea/shop."],
    ["is a bot", { login: "ann", type: "Bot" }, "It was written by a bot."],
  ])("not one who %s", async (_, who, why) => {
    const world = await open([]);
    world.github.permissions["rae"] = "read";
    const { code, log, outputs } = await world.run(commentEvent(world, "@gyre do it", who));
    expect({ code, outputs }).toEqual({ code: 0, outputs: { conclusion: "skipped" } });
    expect(log).toContain(why);
    expect(world.service.requests).toEqual([]);
    expect(world.github.comments).toHaveLength(1);
    expect(world.github.reactions).toEqual([]);
  });

  it("not one whose text another has sent: both need write access", async () => {
    const world = await open([]);
    const issue = { id: 5, number: 7, body: "@gyre do it", user: { login: "zoe", type: "User" } };
    const body = { action: "opened", issue, sender: { login: "ann", type: "User", id: 11 } };
    const { log } = await world.run({ name: "issues", body });
    expect(log).toContain("@zoe has no write access");
    const prompted = await world.run(
      { name: "issues", body: { ...body, action: "labeled" } },
      { inputs: { prompt: "Sort it." } },
    );
    expect(prompted.log).toContain("@zoe has no write access");
    expect(world.service.requests).toEqual([]);
  });

  it("no text of gyre itself, and none without the word that calls it", async () => {
    const world = await open([]);
    for (const body of [
      "Ask @gyre\n\n<!-- gyre-action comment-3 -->",
      "Nothing for it",
      "> @gyre do it",
      "`@gyre` is its name, and foo@gyre.example an address",
      "```\n@gyre do it\n```",
      "<!-- @gyre do it -->",
      "@gyre-next do it",
    ]) {
      const { log, outputs } = await world.run(commentEvent(world, body));
      expect(outputs, `${body}: ${log}`).toEqual({ conclusion: "skipped" });
    }
    expect(world.github.requests).toEqual([]);
  });

  it("a prompt of the workflow, without a thread, by a schedule", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    const { code, log, outputs } = await world.run(
      { name: "schedule", body: { schedule: "0 5 * * 1" } },
      { inputs: { prompt: "Add green tea." } },
    );
    expect(code, log).toBe(0);
    expect(outputs["branch"]).toBe("gyre/run-1-1");
    expect(world.github.comments).toEqual([]);
    expect(world.service.requests[0]?.text).toContain("Add green tea.");
    expect(world.github.pulls).toEqual([expect.objectContaining({ title: "Changes by gyre" })]);
  });

  it("an issue that was opened with the word", async () => {
    const world = await open([{ say: "Hello." }]);
    const issue = { id: 5, number: 7, body: "Hi @GYRE!", user: { login: "ann", type: "User" } };
    const sender = { login: "ann", type: "User", id: 11 };
    const { code, log } = await world.run({
      name: "issues",
      body: { action: "opened", issue, sender },
    });
    expect(code, log).toBe(0);
    expect(world.github.comments[0]?.body).toContain("Hello.");
  });
});

describe("GitHub's API", () => {
  it("is asked again after errors, and after as long as it says", async () => {
    const world = await open([{ say: "Black." }]);
    world.github.faults.push(
      { match: /permission/, status: 502, body: "<html>Bad Gateway</html>" },
      { match: /GET .*issues\/7$/, status: 429, headers: { "retry-after": "0" }, times: 2 },
      {
        match: /GET .*issues\/7\/comments.*page=/,
        status: 403,
        headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000000" },
      },
    );
    const { code, log } = await world.run(commentEvent(world, "@gyre which tea?"));
    expect(code, log).toBe(0);
    expect(world.github.faults).toEqual([]);
    expect(log).toContain("/permission: 502. The next try is in 1 s.");
    expect(world.github.comments[1]?.body).toContain("Black.");
  });

  it("writes no second comment where it is not known whether the first is there", async () => {
    const world = await open([{ say: "Black." }]);
    const fault = { match: /POST .*issues\/7\/comments/, status: 502, isDone: true };
    world.github.faults.push(fault);
    const { code, log } = await world.run(commentEvent(world, "@gyre which tea?"));
    expect(code, log).toBe(0);
    expect(world.github.comments).toHaveLength(2);
    expect(world.github.comments[1]?.body).toContain("Black.");
  });

  it("that wants a longer wait than a job should take is an error", async () => {
    const world = await open([]);
    world.github.faults.push({
      match: /permission/,
      status: 429,
      headers: { "retry-after": "9999" },
    });
    const { code, log, outputs } = await world.run(commentEvent(world, "@gyre do it"));
    expect({ code, outputs }).toEqual({ code: 1, outputs: { conclusion: "failure" } });
    expect(log).toContain("to wait 9999 s is too long");
    expect(world.service.requests).toEqual([]);
  });

  it("that does not say whether a person may write lets that person do nothing", async () => {
    const world = await open([]);
    world.github.faults.push({ match: /permission/, status: 403 });
    const { code, log } = await world.run(commentEvent(world, "@gyre do it"));
    expect(code).toBe(1);
    expect(log).toContain("403 Out of order");
    expect(world.service.requests).toEqual([]);
  });

  it("that takes no comment while it works does not stop the work", async () => {
    const world = await open([WRITE_GREEN, DONE]);
    world.github.faults.push(
      { match: /reactions/, status: 403 },
      { match: /POST .*issues\/7\/comments/, status: 422 },
    );
    const { code, log } = await world.run(commentEvent(world, "@gyre do it"));
    expect(code, log).toBe(0);
    expect(log).toContain("gyre: There is no reaction.");
    expect(log).toContain("gyre: The comment could not be changed.");
    expect(world.github.comments[1]?.body).toContain("Green tea is there now.");
  });

  it("of a thread whose diff is too large to show", async () => {
    const world = await open([{ say: "Large." }]);
    makeBranch(world, "green");
    world.github.faults.push({ match: /GET .*pulls\/7$/, status: 502 });
    world.github.diff = `diff ${"x".repeat(300_000)}`;
    const event = commentEvent(world, "@gyre look", { isPull: true });
    const { code, log } = await world.run(event);
    expect(code, log).toBe(0);
    expect(readMarked(world, "diff.patch")).toContain("(200005 characters more are left out.)");
  });
});

describe("the program", () => {
  it("is installed in the version of the action, without scripts and without secrets", async () => {
    const world = await open([]);
    const bin = join(world.folder, "bin");
    mkdirSync(bin);
    const npm = `#!/usr/bin/env node
      const { mkdirSync, writeFileSync } = require("node:fs");
      const args = process.argv.slice(2);
      writeFileSync(${JSON.stringify(join(world.folder, "npm.json"))}, JSON.stringify({ args, env: process.env }));
      const at = args[args.indexOf("--prefix") + 1] + "/node_modules/gyre/bundle";
      mkdirSync(at, { recursive: true });
      writeFileSync(at + "/gyre.js", 'console.log(JSON.stringify({ type: "result", ok: true, text: "Installed.", turns: 1 }))');
    `;
    writeFileSync(join(bin, "npm"), npm, { mode: 0o755 });
    const { code, log, outputs } = await world.run(commentEvent(world, "@gyre do it"), {
      inputs: { program: "" },
      env: { PATH: `${bin}:${process.env["PATH"]}` },
    });
    expect(code, log).toBe(0);
    expect(outputs["text"]).toBe("Installed.");
    const called = JSON.parse(readFileSync(join(world.folder, "npm.json"), "utf8"));
    expect(called.args).toContain("--ignore-scripts");
    expect(called.args.at(-1)).toMatch(/^gyre@\d+\.\d+\.\d+$/);
    expect(JSON.stringify(called.env)).not.toMatch(new RegExp(`${TEST_KEY}|${TOKEN}`));
  });

  it.each([
    ["trigger", "@gyre now", "write one word"],
    ["publish", "yes", "write pull-request, branch, none"],
    ["comment", "yes", "write true or false"],
    ["version", "1; rm -rf /", "version is"],
    ["env", "GITHUB_TOKEN", "gyre does not get that"],
    ["github-token", "", "There is no github-token"],
  ])("does not start with a wrong %s", async (name, value, why) => {
    const world = await open([]);
    const { code, log } = await world.run(commentEvent(world, "@gyre do it"), {
      inputs: { [name]: value },
    });
    expect(code).toBe(1);
    expect(log).toContain(why);
  });

  it("gets the limits of the workflow, and says which one it reached", async () => {
    const world = await open(() => ({ say: [{ call: "read", arguments: { path: "tea.txt" } }] }));
    const { code } = await world.run(commentEvent(world, "@gyre loop"), {
      inputs: { "max-turns": "2" },
    });
    expect(code).toBe(1);
    expect(world.service.requests).toHaveLength(2);
    expect(world.github.comments[1]?.body).toMatch(/did not get to the end: .*(turns|limit)/);
  });
});
