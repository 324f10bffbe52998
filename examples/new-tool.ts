// A new tool is one file: its limits, its schema, what it does, and what a call would touch.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, defineTool } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { fromSource, type GuardedTool, openToolset, type ToolEnv } from "@gyre/tools";

/** Of a longer page the rest is to be read. */
const MAX_HEADINGS = 3;
const MAX_PAGE_BYTES = 1024 * 1024;

/** Lists the headings of a Markdown page, with their lines. */
function headingsTool(env: ToolEnv): GuardedTool {
  const tool = defineTool({
    name: "headings",
    description: `List the headings of a Markdown page. At most ${MAX_HEADINGS} a call.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "The page, relative to the workspace" },
        from: { type: "integer", minimum: 1, description: "First heading to list. Default 1" },
      },
      required: ["path"],
    },
    concurrent: true,
    async execute({ path, from = 1 }) {
      const { bytes, info } = await env.workspace.read(path, MAX_PAGE_BYTES);
      const lines = new TextDecoder().decode(bytes).split("\n");
      const found = lines.flatMap((text, at) => (text.startsWith("#") ? `${at + 1}: ${text}` : []));
      const shown = found.slice(from - 1, from - 1 + MAX_HEADINGS);
      if (shown.length === 0) throw new Error(`${path} has ${found.length} headings.`);
      const list = fromSource({ kind: "file", name: info.path }, shown.join("\n"));
      const next = from + shown.length;
      const more = { type: "text" as const, text: `[Go on with from=${next}.]` };
      return { content: next > found.length ? [list] : [list, more] };
    },
  });
  return {
    ...tool,
    async access({ path }) {
      const target = (await env.workspace.resolve(String(path))).path;
      return { kind: "read", targets: [target], summary: `List the headings of ${target}` };
    },
  };
}

// The rest shows it at work, beside the tools that are there.
const root = await mkdtemp(join(tmpdir(), "gyre-"));
await writeFile(join(root, "tea.md"), "# Tea\n\n## Green\n\n## Black\n\nStrong.\n\n## Mint\n");
const tools = await openToolset({ root, sandbox: "none", stateFolder: `${root}.state` });
tools.registry.register(headingsTool(tools.env));

const model = scriptedModel([
  call("headings", { path: "tea.md" }),
  call("headings", { path: "tea.md", from: 4 }),
  call("headings", { path: "../coffee.md" }),
  "Green, black and mint.",
]);
const agent = new Agent({
  protocol: model,
  model: model.model,
  tools: tools.registry.list(),
});
agent.subscribe((event) => {
  if (event.type !== "tool_execution_end") return;
  for (const block of event.result.content) console.log(textOf({ content: [block] }));
});
await agent.prompt("Which teas are there?");
await tools.close();
await rm(root, { recursive: true });
await rm(`${root}.state`, { recursive: true });
