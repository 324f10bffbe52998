import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, defineTool } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import {
  type Access,
  type GuardedTool,
  openWorkspace,
  type PermissionMode,
  permissions,
} from "@gyre/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "./snippets.ts";

const MODES = ["plan", "ask", "auto-edit", "auto", "full"] as const satisfies PermissionMode[];
const PLACES = { sandbox: true, none: false, waived: "waived" } as const;

interface Row {
  what: string;
  where: string;
  effects: string[];
}

const rows: Row[] = [];
for (const line of readFileSync(join(root, "docs/permissions.md"), "utf8").split("\n")) {
  const cells = line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
  if (cells.length !== 2 + MODES.length || cells[1] === "where" || cells[1] === "---") continue;
  const [what = "", where = "", ...effects] = cells;
  rows.push({ what: what === "" ? (rows.at(-1)?.what ?? "") : what, where, effects });
}

const plain = (access: Partial<Access> & Pick<Access, "kind" | "targets">): Access => ({
  summary: "",
  ...access,
});
/** What the rows without a command are about; `undefined` says nothing of itself. */
const CALLS: Readonly<Record<string, readonly (Access | undefined)[]>> = {
  "read, keep its own notes, ask another model": (["read", "none", "agent"] as const).map((kind) =>
    plain({ kind, targets: ["a.txt"] }),
  ),
  "read outside of the workspace: `/etc/hosts`": [
    plain({ kind: "read", targets: ["/etc/hosts"], outside: ["/etc/hosts"] }),
  ],
  "write inside of the workspace": [plain({ kind: "write", targets: ["a.txt"] })],
  "fetch a page": [plain({ kind: "network", targets: ["https://example.org/"] })],
  "the same, at a path that [a text of others](#prompt-injection-names-from-texts-of-others) brought":
    [plain({ kind: "write", targets: ["a.txt"] })],
  "the same, at an address that a text of others brought, with a rule `fetch`": [
    plain({ kind: "network", targets: ["https://example.org/"] }),
  ],
  "send something by a tool": [plain({ kind: "network", targets: ["https://example.org/"] })],
  "destroy something by a tool: a deletion": [
    plain({ kind: "write", targets: ["a.txt"], destructive: true }),
  ],
  "run outside of the sandbox": [plain({ kind: "run", targets: ["ls"], unsandboxed: true })],
  "not say what it would do, as tools of MCP servers": [undefined],
};

function listCalls(what: string): readonly (Access | undefined)[] {
  const known = CALLS[what];
  if (known) return known;
  const commands = [...what.matchAll(/`([^`]+)`/g)].map(([, text = ""]) =>
    text.replaceAll("\\|", "|"),
  );
  return commands.map((command) => plain({ kind: "run", targets: [command] }));
}

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-modes-"));
  writeFileSync(join(folder, "a.txt"), "a\n");
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What becomes of a call: allow, ask or deny. */
async function decide(
  access: Access | undefined,
  mode: PermissionMode,
  sandboxed: boolean | "waived",
  { isFetch, headless, isBrought }: { isFetch: boolean; headless: boolean; isBrought: boolean },
): Promise<string> {
  const workspace = await openWorkspace(folder);
  let outcome = "deny";
  const plainTool = defineTool({
    name: "shell",
    description: "For the table.",
    parameters: { type: "object", properties: {} },
    execute() {
      outcome = "allow";
      return "done";
    },
  });
  const tool: GuardedTool | typeof plainTool = access
    ? {
        ...plainTool,
        ...(isFetch && { presentation: { kind: "fetch" as const } }),
        access: () => access,
      }
    : plainTool;
  const guard = permissions({
    mode,
    sandboxed,
    workspace,
    ...(isBrought && {
      doubt: () => Promise.resolve("It comes from a page."),
      rules: { allow: ["shell", "fetch"] },
    }),
    ...(headless
      ? { headless }
      : {
          ask() {
            outcome = "ask";
            return Promise.resolve({ allow: false });
          },
        }),
  });
  const model = scriptedModel([call("shell", {}), "Done."]);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    tools: [tool],
    middleware: [guard],
  });
  await agent.prompt("Go");
  await workspace.close();
  return outcome;
}

describe("the table of modes", () => {
  it("is on the page", () => {
    expect(rows.length).toBe(20);
    expect(rows.every(({ what }) => listCalls(what).length > 0)).toBe(true);
  });

  it.each(rows)("$what ($where)", async ({ what, where, effects }) => {
    const places = where === "any" ? Object.values(PLACES) : [PLACES[where as keyof typeof PLACES]];
    const isBrought = what.includes("brought");
    const isFetch = what === "fetch a page" || what.includes("at an address");
    for (const access of listCalls(what)) {
      for (const [index, mode] of MODES.entries()) {
        for (const sandboxed of places) {
          const about = `${access?.targets.join(" ")} in ${mode}, sandbox ${sandboxed}`;
          const effect = effects[index] ?? "";
          expect(
            await decide(access, mode, sandboxed, { isFetch, isBrought, headless: false }),
            about,
          ).toBe(effect);
          const inPrint = effect === "ask" ? "deny" : effect;
          expect(
            await decide(access, mode, sandboxed, { isFetch, isBrought, headless: true }),
            about,
          ).toBe(inPrint);
        }
      }
    }
  });
});
