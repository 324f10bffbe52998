import { Agent, defineTool } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { act, createElement as h, type ReactNode, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { describe, expect, expectTypeOf, it, vi } from "vitest";
import { createRemoteWorld } from "../../../server/src/testing/remote-world.ts";
import { RemoteAgent } from "@gyre/server/client";
import { createAgentStore } from "../store/agent-store.ts";
import type { RemoteSession } from "../store/source.ts";
import type { ToolPart, ViewMessage } from "../store/view-message.ts";
import { createManualFrames } from "../testing/frames.ts";
import { createContainer, usePage } from "../testing/page.ts";
import { useAgent, useAgentState } from "./use-agent.ts";

usePage();

function createAgent(script: Parameters<typeof scriptedModel>[0]): Agent {
  const model = scriptedModel(script);
  return new Agent({ model: model.model, protocol: model });
}

function showText({ parts }: ViewMessage): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** A page in StrictMode. */
function createPage(): {
  container: Element;
  root: Root;
  render: (node: ReactNode) => Promise<void>;
} {
  const container = createContainer();
  const root = createRoot(container);
  const render = (node: ReactNode): Promise<void> =>
    act(async () => root.render(h(StrictMode, null, node)));
  return { container, root, render };
}

describe("useAgent", () => {
  it("renders an agent in StrictMode", async () => {
    const agent = createAgent([["Gre", "en."]]);
    const frames = createManualFrames();
    let chat: ReturnType<typeof useAgent> | undefined;
    function Chat(): ReactNode {
      chat = useAgent({ agent }, frames);
      return chat.messages.map((message) => h("li", { key: message.id }, showText(message)));
    }
    const { container, root, render } = createPage();
    await render(h(Chat));
    await act(async () => {
      void chat?.prompt("Which tea? ");
      frames.draw();
    });
    expect(container.textContent).toBe("Which tea? ");
    const [shown] = container.childNodes;
    await act(async () => {
      await agent.waitForIdle();
      frames.draw();
    });
    expect(container.textContent).toBe("Which tea? Green.");
    // The prompt has kept its element.
    expect(container.childNodes[0]).toBe(shown);
    await act(async () => root.unmount());
    expect(container.textContent).toBe("");
  });

  it("opens one session in StrictMode, and leaves it with the page", async () => {
    const world = createRemoteWorld({ script: ["Green."] });
    const { client, connections } = world.client();
    const leave = vi.spyOn(RemoteAgent.prototype, "close");
    const frames = createManualFrames();
    function Chat({ session }: { session?: string | undefined }): ReactNode {
      const { messages, connection, ...chat } = useAgent({ connect: client, session }, frames);
      return [`${connection} ${chat.session} `, ...messages.map(showText)];
    }
    const { container, root, render } = createPage();
    await render(h(Chat));
    expect(container.textContent).toBe("connecting undefined ");
    const wait = (text: string): Promise<void> =>
      vi.waitFor(async () => {
        await act(async () => void frames.draw());
        expect(container.textContent).toBe(text);
      });
    await wait("connected s_1 ");
    expect(world.host.agents).toHaveLength(1);
    // The page has put the id into its address: it is the same session.
    await render(h(Chat, { session: "s_1" }));
    await wait("connected s_1 ");
    expect(leave).not.toHaveBeenCalled();
    await render(h(Chat, { session: "kept" }));
    await wait("connected kept ");
    expect(leave).toHaveBeenCalledTimes(1);
    await act(async () => root.unmount());
    await vi.waitFor(() => expect(leave).toHaveBeenCalledTimes(2));
    expect(connections()).toBe(1);
    expect(world.errors).toEqual([]);
    leave.mockRestore();
  });

  it("follows another agent when it gets one, and the first no more", async () => {
    const agents = [createAgent(["One."]), createAgent(["Two."])] as const;
    await Promise.all(agents.map((agent) => agent.prompt("Go. ")));
    function Chat({ agent }: { agent: Agent }): ReactNode {
      return useAgent({ agent }).messages.map(showText);
    }
    const { container, root, render } = createPage();
    await render(h(Chat, { agent: agents[0] }));
    expect(container.textContent).toBe("Go. One.");
    await render(h(Chat, { agent: agents[1] }));
    expect(container.textContent).toBe("Go. Two.");
    await act(async () => root.unmount());
  });

  it("renders components that read a part of a store when that part has changed", async () => {
    const agent = createAgent(["Green."]);
    const frames = createManualFrames();
    const store = createAgentStore(agent, frames);
    let renders = 0;
    function Status(): ReactNode {
      renders++;
      return useAgentState(store, ({ status }) => status);
    }
    const { container, root, render } = createPage();
    await render(h(Status));
    const before = renders;
    await act(async () => {
      const sent = store.prompt("Which tea?");
      for (let frame = 0; frame < 10; frame++) {
        await Promise.resolve();
        frames.draw();
      }
      await sent;
      frames.draw();
    });
    expect(container.textContent).toBe("idle");
    // Running and idle again, each twice in StrictMode.
    expect(renders - before).toBeLessThanOrEqual(4);
    await act(async () => root.unmount());
  });
});

describe("types", () => {
  const price = defineTool({
    name: "price",
    description: "The price of a tea.",
    parameters: { type: "object", properties: { tea: { type: "string" } }, required: ["tea"] },
    execute: ({ tea }) => ({ euros: tea.length }),
  });
  const say = defineTool({
    name: "say",
    description: "Says it.",
    parameters: { type: "object", properties: { loud: { type: "boolean" } } },
    execute: async ({ loud }) => (loud ? "TEA" : "tea"),
  });
  const tools = [price, say] as const;
  const done = "output-available" as const;

  it("the name of a tool narrows its input and its output", () => {
    type Part = ToolPart<(typeof tools)[number]>;
    type Price = Extract<Part, { name: "price"; state: typeof done }>;
    type Say = Extract<Part, { name: "say"; state: typeof done }>;
    expectTypeOf<Price["input"]["tea"]>().toEqualTypeOf<string>();
    expectTypeOf<Price["output"]>().toEqualTypeOf<{ euros: number }>();
    expectTypeOf<Say["output"]>().toEqualTypeOf<string>();
    expectTypeOf<Part["name"]>().toEqualTypeOf<"price" | "say">();
    type Streamed = Extract<Part, { name: "price"; state: "input-streaming" }>;
    expectTypeOf<Streamed["input"]["tea"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<ToolPart["name"]>().toEqualTypeOf<string>();
  });

  it("the tools are those of the agent, or are named", () => {
    const agent = new Agent({ tools });
    const local = () => useAgent({ agent });
    const remote = (source: RemoteSession) => useAgent<typeof tools>(source);
    const any = (source: RemoteSession) => useAgent(source);
    type Tool = (typeof tools)[number];
    expectTypeOf(local)
      .returns.toHaveProperty("messages")
      .toEqualTypeOf<readonly ViewMessage<Tool>[]>();
    expectTypeOf(remote)
      .returns.toHaveProperty("messages")
      .toEqualTypeOf<readonly ViewMessage<Tool>[]>();
    expectTypeOf(any).returns.toHaveProperty("messages").toEqualTypeOf<readonly ViewMessage[]>();
    type Approval = NonNullable<Parameters<ReturnType<typeof remote>["approve"]>[1]>;
    expectTypeOf<{ args: { tea: string } }>().toExtend<Approval>();
    expectTypeOf<{ args: { tea: number } }>().not.toExtend<Approval>();
  });
});
