import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MCP_CALL } from "@gyre/mcp";
import { describe, expect, it } from "vitest";
import { teaServer } from "../../../../mcp/src/testing/tea-server.ts";
import { attachWorld } from "../../testing/attached-program.ts";
import type { WholeAnswer } from "../../testing/scripted-service.ts";
import { ask, decide } from "../../testing/terminal-world.ts";

// What a session on a server asks, in two terminals that are attached to it.

const world = attachWorld();
const IN_SANDBOX = { args: ["--sandbox", "auto", "--mode", "ask"], rows: 30 };
const UNSANDBOXED = ["--mode", "full", "--allow-unsandboxed", "--sandbox", "none"];

const call = (name: string, args: object): WholeAnswer => ({
  say: [{ call: name, arguments: { ...args } }],
});

const isIdle = (rows: readonly string[]): boolean =>
  !rows.some((row) => /Esc (?:interrupts|stops)/.test(row));

describe("what a command did in a layer", { tags: "bubblewrap" }, () => {
  const script = [call("shell", { command: "echo 1 > one; echo 2 > two" }), { say: "Done." }];

  it("is asked about in both terminals, and kept by one", async () => {
    const { server, one, other } = await world.attachTwice(script, IN_SANDBOX);
    ask(one, "Make two.");
    await one.until("Keep what it did?");
    await other.until("Keep what it did?");
    expect(other.screen().join("\n")).toContain("+ one: new");
    expect(readdirSync(server.run.cwd)).toEqual([]);
    await decide(other, "y", "Done.");
    await one.until("Done.");
    expect(readdirSync(server.run.cwd).toSorted()).toEqual(["one", "two"]);
    expect(one.screen().join("\n")).not.toContain("Keep what it did?");
  });

  it("is kept in part, or run directly", async () => {
    const { server, one } = await world.attachTwice(
      [...script, ...script.slice(0, 1), { say: "Again." }],
      IN_SANDBOX,
    );
    ask(one, "Make two.");
    await one.until("Keep what it did?");
    await decide(one, "p", "Keep which? 2 of 2");
    one.type(" ");
    await one.until("Keep which? 1 of 2");
    one.press("enter");
    await one.until("Done.");
    await one.until(isIdle);
    expect(readdirSync(server.run.cwd)).toEqual(["two"]);
    one.type("\u0015");
    ask(one, "Once more.");
    await one.until("Keep what it did?");
    await decide(one, "r", "Again.");
    expect(readdirSync(server.run.cwd).toSorted()).toEqual(["one", "two"]);
  });
});

describe("a plan", () => {
  const PLAN = "1. Write tea.txt\n2. Read it again\n";
  const plan = call("plan", { plan: PLAN });
  const write = call("write", { path: "tea.txt", content: "green" });

  it("is reviewed in both terminals, and carried out when one approves it", async () => {
    const { server, one, other } = await world.attachTwice([plan, write, { say: "Written." }], {
      args: ["--mode", "auto-edit"],
      wish: ["--mode", "plan"],
      rows: 30,
    });
    ask(one, "Make tea.");
    await one.until("Carry out this plan?");
    await other.until("Carry out this plan?");
    expect(other.screen().join("\n")).toContain("Write tea.txt");
    await decide(other, "1", "Written.");
    await one.until("Written.");
    await one.until("Read it again");
    expect(server.service.requests[1]?.text).toContain("Approved. The mode is auto-edit now");
    expect(readFileSync(join(server.run.cwd, "tea.txt"), "utf8")).toBe("green");
    expect(one.screen().join("\n")).not.toContain("Carry out this plan?");
  });

  it("that is left interrupts the run, in both", async () => {
    const { one, other } = await world.attachTwice([plan], {
      args: ["--mode", "auto-edit"],
      wish: ["--mode", "plan"],
      rows: 30,
    });
    ask(one, "Make tea.");
    await one.until("Carry out this plan?");
    await other.until("Carry out this plan?");
    one.press("escape");
    await one.until(isIdle);
    await expect(other.until(isIdle)).resolves.toBeUndefined();
    expect(other.screen().join("\n")).not.toContain("Carry out this plan?");
  });

  it("is an answer where no terminal is attached that shows plans", async () => {
    const { server, one } = await world.attachTwice([{ say: "1. Tea" }], {
      args: ["--mode", "auto-edit"],
    });
    const reader = await world.attach(server, {
      args: ["--cwd", ".", "--mode", "plan", "--screen-reader"],
      shows: "This is gyre",
    });
    reader.type("Make tea.\r");
    await reader.until("1. Tea");
    expect(server.service.requests[0]?.text).toContain("write it as your answer");
    expect(one.screen().join("\n")).not.toContain("Tea");
  });
});

it("a question of an MCP server is asked in both terminals, and answered by one", async () => {
  const tea = await teaServer();
  world.cleanUps.push(() => tea.close());
  const order = call(MCP_CALL, { tool: "mcp__tea__order", arguments: {} });
  const config = { mcp: { tea: { url: tea.url } }, allow: ["mcp__tea__*"] };
  const { server, one, other } = await world.attachTwice([order, { say: "Done." }], {
    files: { "../config/gyre/config.json": JSON.stringify(config) },
    rows: 30,
  });
  ask(one, "Order tea.");
  await one.until('The MCP server "tea" asks');
  await other.until('The MCP server "tea" asks');
  expect(other.screen()).toContain("Which tea?");
  await decide(other, "1", "name");
  await decide(other, "2", "cups");
  await other.until("› 2");
  other.press("enter");
  await other.until('Send this to "tea"?');
  await decide(other, "1", "asks you to open a page");
  // The first is gone in the other terminal, and the second is there.
  await one.until("asks you to open a page");
  await decide(one, "2", "Done.");
  await other.until("Done.");
  expect(server.service.requests[1]?.text).toContain("2 cups of black:");
});

it("Ctrl+B sends a command that runs at the server to the background", async () => {
  const { server, one, other } = await world.attachTwice(
    [call("shell", { command: "echo begun; sleep 1000" }), { say: "Then that." }],
    { args: [...UNSANDBOXED, "--tools", "shell,jobs"], wish: ["--mode", "full"], rows: 30 },
  );
  ask(one, "Do it.");
  await one.until(/^ {2}begun$/m);
  await other.until(/^ {2}begun$/m);
  other.press("ctrl+b");
  await one.until("Then that.");
  expect(server.service.requests[1]?.text).toMatch(
    /moved it to the background: it goes on as job-/,
  );
  await one.until("· 1 job");
  await other.until("· 1 job");
});
