import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInThisContext } from "node:vm";
import { scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openHarness, type Harness } from "@gyre/coding/internal/harness/harness";
import { availableCommands, runSlashCommand } from "../../packages/cli/src/modes/acp/commands.ts";
import { builtinCommands } from "../../packages/cli/src/slash-commands/builtin.ts";
import type { SlashCommand } from "../../packages/cli/src/slash-commands/command-context.ts";
import { listBuiltin } from "../../packages/cli/src/slash-commands/find-commands.ts";
import { FakeView } from "../../packages/cli/src/testing/slash-commands.ts";
import { readFences, root } from "../snippets.ts";

// The command of the page, as it stands there, in the list of the program.

const page = readFileSync(join(root, "docs/contributing/add-a-slash-command.md"), "utf8");
const [example, output] = readFences(page);
const list = builtinCommands as SlashCommand[];

let folder = "";
let harness: Harness | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-recipe-"));
  // An object literal without types is JavaScript.
  const [command] = runInThisContext(`[${example?.body ?? ""}]`) as [SlashCommand];
  list.push(command);
});
afterEach(async () => {
  list.pop();
  await harness?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function openView(): Promise<FakeView> {
  const client = scriptedModel(["Hello."]);
  const { model } = client;
  const env = { XDG_STATE_HOME: folder, HOME: folder };
  harness = await openHarness({
    settings: { tools: [], sandbox: "none" },
    cwd: folder,
    env,
    approvals: "deny",
    warn: () => {},
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(model),
      find: () => Promise.resolve(model),
      list: () => Promise.resolve([model]),
    },
  });
  return new FakeView({ harness, env, cwd: folder });
}

it("the page's object is all that a command needs: it runs, and shows what the page says", async () => {
  expect(example?.note).toBe("builtin.ts");
  const view = await openView();
  await view.harness.prompt({ text: "Hi" });
  await view.run("answers");
  expect(view.output).toEqual([output?.body.trim()]);
  await expect(view.run("answers another-model")).rejects.toThrow(
    "another-model has not answered yet.",
  );
});

it("is in every view, in /help and in an editor's menu", async () => {
  const view = await openView();
  for (const name of ["terminal", "screen reader", "editor"] as const) {
    expect(listBuiltin(name).map((command) => command.name)).toContain("answers");
  }
  await view.run("help");
  expect(view.output[0]).toContain(
    "| `/answers` | count the answers of this conversation (model) |",
  );
  expect(availableCommands(view.harness)).toContainEqual({
    name: "answers",
    description: "count the answers of this conversation",
    input: { hint: "[model]" },
  });
  const { context } = view;
  expect(await runSlashCommand({ name: "answers", rest: "" }, context)).toEqual({
    markdown: "The model has answered 0 times.",
  });
});
