import { countTools, readSpending } from "@gyre/coding/internal/harness/session/spending";
import { Agent, type Middleware } from "@gyre/agent";
import type { Model } from "@gyre/ai";
import type { ScriptedModel } from "@gyre/ai/testing";
import { createJournal } from "@gyre/sessions";
import { openToolset, permissions, type PermissionMode } from "@gyre/tools";
import { MODE_NAMES } from "@gyre/coding/internal/text/choices";
import type { AcpFolder } from "../modes/acp/host.ts";
import { createAgentQueue } from "@gyre/coding/internal/conversation/queue";
import type { Harness } from "@gyre/coding/internal/harness/harness";

export interface ScriptedHarnessOptions {
  script: ScriptedModel;
  cwd: string;
  stateFolder: string;
  tools: readonly string[];
  mode?: PermissionMode;
  limits?: { maxTurns?: number };
}

/** The models that a scripted harness knows by name. */
export const MODELS: readonly Model[] = ["one", "two"].map((id) => ({
  id,
  name: `Model ${id}`,
  api: "scripted",
  provider: "scripted",
  contextWindow: 1000,
  input: ["text", "image"],
  price: { input: 1, output: 1 },
}));

/** An agent that follows a script, with real tools and permissions and a real session. */
export async function scriptedHarness(
  { script, cwd, stateFolder, tools, limits, ...options }: ScriptedHarnessOptions,
  { approvals, session }: Parameters<AcpFolder["open"]>[0],
): Promise<Harness> {
  const context = await session?.context();
  const toolset = await openToolset({ root: cwd, tools, sandbox: "none", stateFolder });
  let mode = options.mode ?? "ask";
  const guard: Middleware = permissions({
    mode: () => mode,
    sandboxed: "waived",
    workspace: toolset.env.workspace,
    ...(typeof approvals === "function" && { ask: approvals }),
  });
  const spending = await readSpending(session, context);
  const agent = new Agent({
    protocol: script,
    middleware: [guard, countTools((payment) => spending.add(payment))],
    retry: { maxRetries: 0 },
    ...(limits && { limits }),
    ...(session && { sink: createJournal(session, context) }),
    ...(MODELS[0] && { model: MODELS[0] }),
    tools: toolset.registry.list(),
    messages: context?.messages ?? [],
  });
  agent.subscribe((event) => {
    if (event.type === "message_end") spending.addMessage(event.message);
  });
  const harness: Harness = {
    agent,
    spending,
    takeSpending: () => ({}),
    callTool: () => Promise.reject(new Error("The user calls no tools here.")),
    toolset,
    session,
    denied: [],
    modes: MODE_NAMES,
    compactAt: 160_000,
    usualThinking: "off",
    start: async () => {},
    decide: async () => {},
    saved: async () => {},
    queue: createAgentQueue(agent, async () => {}),
    get model() {
      const { model } = agent.state;
      if (!model) throw new Error("There is no model.");
      return model;
    },
    get mode() {
      return mode;
    },
    async prompt({ text, images = [], attachments = [] }) {
      const end = await agent.prompt(text, { images, attachments });
      return { end, turns: end.turns, usage: end.usage };
    },
    isCutOff: false,
    resume: () => Promise.reject(new Error("Editors send prompts.")),
    ask: () => Promise.reject(new Error("Editors send prompts.")),
    askAside: () => Promise.reject(new Error("Editors send prompts.")),
    findModel: () => Promise.reject(new Error("Its models have no names.")),
    setModel(name) {
      const model = MODELS.find(({ id, provider }) => name === id || name === `${provider}/${id}`);
      if (!model) return Promise.reject(new Error(`There is no model "${name}".`));
      agent.setModel(model);
      return Promise.resolve(model);
    },
    setThinking(level) {
      agent.setThinkingLevel(level);
      return Promise.resolve();
    },
    setMode(next) {
      mode = next;
      return Promise.resolve();
    },
    setTools(names) {
      const wanted = new Set(names.map((name) => toolset.registry.get(name)));
      agent.setTools(toolset.registry.list().filter((each) => wanted.has(each)));
      return Promise.resolve();
    },
    async close() {
      agent.abort();
      await agent.waitForIdle();
      await toolset.close();
    },
  };
  return harness;
}
