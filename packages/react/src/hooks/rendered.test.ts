import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { outcomeOf, textOf } from "@gyre/ai";
import {
  act,
  createElement as h,
  memo,
  Profiler,
  type ReactNode,
  startTransition,
  StrictMode,
  useDeferredValue,
  useLayoutEffect,
  useState,
} from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import { makeRandom } from "../../../server/src/testing/random-runs.ts";
import { pickSeed } from "../../../../tests/support/cases.ts";
import { type AgentSnapshot, type AgentStore, createAgentStore } from "../store/agent-store.ts";
import type { ViewMessage, ViewPart } from "../store/view-message.ts";
import { createManualFrames } from "../testing/frames.ts";
import { createContainer, usePage } from "../testing/page.ts";
import { PlayedAgent, playConversation } from "../testing/played-agent.ts";
import { useAgent, useAgentState } from "./use-agent.ts";

usePage();

const EVENTS = 10_000;
/** Between two frames at most. */
const MAX_EVENTS_A_FRAME = 60;

function showPart(part: ViewPart): string {
  if (part.type === "text") return part.text;
  if (part.type === "reasoning") return `(${part.text})`;
  if (part.type === "error") return `!${part.text}`;
  if (part.type !== "tool") return "?";
  const head = `${part.name}${JSON.stringify(part.input)}`;
  if (part.state === "output-available") return `${head}=${JSON.stringify(part.output)}`;
  if (part.state === "output-error") return `${head}:${part.errorText}`;
  if (part.state === "output-denied") return `${head}-${part.reason}`;
  if (part.state === "approval-requested") return `${head}?${part.approval.reason}`;
  return head;
}

const Message = memo(function Message({ message }: { message: ViewMessage }): ReactNode {
  return h("p", null, `${message.role}>`, message.parts.map(showPart));
});

/** The same text, from the transcript itself. */
function reduceText({ state }: PlayedAgent): string {
  const results = new Map(
    state.messages.flatMap((message) =>
      isLlmMessage(message) && message.role === "toolResult"
        ? [[message.toolCallId, message] as const]
        : [],
    ),
  );
  const showMessage = (message: AgentMessage): string => {
    if (!isLlmMessage(message) || message.role === "toolResult") return "";
    if (message.role === "user") return `user>${textOf(message)}`;
    const blocks = message.content.map((block) => {
      if (block.type === "text") return block.text;
      if (block.type === "thinking") return `(${block.thinking})`;
      if (block.type !== "toolCall") return "?";
      const head = `${block.name}${JSON.stringify(block.arguments)}`;
      const result = results.get(block.id);
      if (!result) {
        const asked = state.pending.find(({ toolCall }) => toolCall.id === block.id);
        return asked ? `${head}?${asked.reason}` : head;
      }
      const [content] = result.content;
      const text = content?.type === "text" ? content.text : "";
      if (outcomeOf(result) === "denied") return `${head}-${text}`;
      if (outcomeOf(result) !== "ok") return `${head}:${text}`;
      return `${head}=${JSON.stringify(result.details ?? text)}`;
    });
    const failed = message.stopReason === "error" ? `!${message.errorMessage}` : "";
    return `assistant>${blocks.join("")}${failed}`;
  };
  const streamed = state.streamMessage ? [state.streamMessage] : [];
  return [...state.messages, ...streamed].map(showMessage).join("");
}

it("10,000 events in StrictMode: what is rendered is what the events reduce to, once a frame at most", async () => {
  const seed = pickSeed();
  console.log(`GYRE_SEED=${seed}`);
  const random = makeRandom(seed);
  const agent = new PlayedAgent();
  const frames = createManualFrames();
  let commits = 0;
  let latest: AgentSnapshot | undefined;
  function Chat(): ReactNode {
    const { messages, store } = useAgent({ agent }, frames);
    latest = store.getSnapshot();
    return messages.map((message) => h(Message, { key: message.id, message }));
  }
  const container = createContainer();
  const root = createRoot(container);
  const onRender = (): void => void commits++;
  await act(async () =>
    root.render(h(StrictMode, null, h(Profiler, { id: "chat", onRender }, h(Chat)))),
  );
  expect(agent.listeners).toBe(1);
  const mounts = commits;
  const kept = new Map<AgentSnapshot, string>();
  const events = playConversation(random);
  for (let played = 0; played < EVENTS;) {
    const more = Math.min(1 + Math.floor(random() * MAX_EVENTS_A_FRAME), EVENTS - played);
    await act(async () => {
      for (let left = more; left > 0; left--) agent.play(events.next().value);
      frames.draw();
    });
    played += more;
    expect(container.textContent).toBe(reduceText(agent));
    const { isStreaming, pending } = agent.state;
    const idle = ["idle", "failed"];
    expect(isStreaming ? ["running"] : pending.length > 0 ? ["waiting"] : idle).toContain(
      latest?.status,
    );
    if (latest && random() < 0.1) kept.set(latest, JSON.stringify(latest));
  }
  // What was shown once stays as it was, though messages and arguments grow in place.
  for (const [snapshot, text] of kept) expect(JSON.stringify(snapshot)).toBe(text);
  expect(commits - mounts).toBeLessThanOrEqual(frames.count);
  expect(frames.count).toBeLessThan(EVENTS);
  console.log(`${EVENTS} events, ${frames.count} frames, ${commits - mounts} renders`);
  await act(async () => root.unmount());
  expect(agent.listeners).toBe(0);
}, 300_000);

/** Components that read the store, each on its own. */
const READERS = 40;
/** How long one takes: several slices of React's time for all of them. */
const READER_MS = 0.3;
const FRAMES = 60;

it("concurrent rendering: no two components show different snapshots", async () => {
  const seed = pickSeed();
  console.log(`GYRE_SEED=${seed}`);
  const random = makeRandom(seed);
  const agent = new PlayedAgent();
  const frames = createManualFrames();
  const store: AgentStore = createAgentStore(agent, frames);
  const versions = new Map<AgentSnapshot, number>();
  const readVersion = (snapshot: AgentSnapshot): number => {
    const version = versions.get(snapshot) ?? versions.size;
    versions.set(snapshot, version);
    return version;
  };
  let renders = 0;
  const Reader = memo(function Reader({ tick }: { tick: number }): ReactNode {
    const version = useAgentState(store, readVersion);
    const until = performance.now() + READER_MS;
    while (performance.now() < until);
    renders++;
    return h("i", null, `${version}.${tick} `);
  });
  const torn: string[] = [];
  let setTick: (tick: number) => void = () => {};
  const container = createContainer();
  function Page(): ReactNode {
    const [tick, set] = useState(0);
    const { messages } = useAgent({ store });
    // A list that lags behind on purpose is of one snapshot as well.
    const late = useDeferredValue(messages);
    setTick = set;
    useLayoutEffect(() => {
      const [readers = ""] = (container.textContent ?? "").split("|");
      if (new Set(readers.trim().split(" ")).size !== 1) torn.push(readers);
    });
    return [
      ...Array.from({ length: READERS }, (_, index) => h(Reader, { key: index, tick })),
      "|",
      h(
        "p",
        { key: "late" },
        late.map(({ parts }) => parts.map(showPart)),
      ),
    ];
  }
  Reflect.set(globalThis, "IS_REACT_ACT_ENVIRONMENT", false);
  const root = createRoot(container);
  root.render(h(StrictMode, null, h(Page)));
  const pass = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await expect.poll(() => container.textContent).toContain("|");
  const events = playConversation(random);
  let interleaved = 0;
  for (let frame = 1; frame <= FRAMES; frame++) {
    startTransition(() => setTick(frame));
    const before = renders;
    for (let left = Math.floor(random() * 4); left > 0; left--) await pass();
    if ((renders - before) % READERS !== 0) interleaved++;
    for (let left = 20; left > 0; left--) agent.play(events.next().value);
    frames.draw();
    if (random() < 0.5) await pass();
  }
  frames.draw();
  const last = readVersion(store.getSnapshot());
  await expect.poll(() => container.textContent).toContain(`${last}.${FRAMES} |`);
  const shown = store
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.map(showPart))
    .join("");
  await expect.poll(() => (container.textContent ?? "").split("|").slice(1).join("|")).toBe(shown);
  expect(torn).toEqual([]);
  expect(interleaved).toBeGreaterThan(0);
  console.log(`${FRAMES} frames, ${interleaved} of them in the middle of a render`);
  root.unmount();
  await expect.poll(() => agent.listeners).toBe(0);
  Reflect.set(globalThis, "IS_REACT_ACT_ENVIRONMENT", true);
}, 300_000);
