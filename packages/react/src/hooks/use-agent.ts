import type { Agent, AgentTool } from "@gyre/agent";
import { useMemo, useState, useSyncExternalStore } from "react";
import { type AgentSnapshot, AgentStore } from "../store/agent-store.ts";
import type { StoreOptions } from "../store/snapshot-feed.ts";
import type { RemoteSession, StoreAgent } from "../store/source.ts";

type Methods =
  | "prompt"
  | "steer"
  | "followUp"
  | "retry"
  | "takeBack"
  | "approve"
  | "deny"
  | "abort";

/** What a component gets: the newest snapshot, what it can do, and the store for components below it. */
export interface UseAgent<Tool extends AgentTool = AgentTool>
  extends AgentSnapshot<Tool>, Pick<AgentStore<Tool>, Methods> {
  readonly store: AgentStore<Tool>;
}

/** A local or a remote agent that the program has made, and that goes on when the component is gone. */
export interface LocalAgent<Tool extends AgentTool = AgentTool> {
  readonly agent: Agent<Tool> | StoreAgent;
}

/** A store of the program's own: several components share it. */
export interface SharedStore<Tool extends AgentTool = AgentTool> {
  readonly store: AgentStore<Tool>;
}

/**
 * Follows an agent: renders again when its snapshot has changed, once a frame at most. A session is opened when the
 * component is mounted and left when it is unmounted; StrictMode opens no second one. Another `agent`, `store` or
 * `session` is followed in place of the one before; of `connect`, `create` and the options the first ones count.
 */
export function useAgent<Tool extends AgentTool>(
  source: LocalAgent<Tool> | SharedStore<Tool>,
  options?: StoreOptions,
): UseAgent<Tool>;
export function useAgent<Tools extends readonly AgentTool[] = readonly AgentTool[]>(
  source: RemoteSession | LocalAgent,
  options?: StoreOptions,
): UseAgent<Tools[number]>;
export function useAgent(
  source: RemoteSession | LocalAgent | SharedStore,
  options: StoreOptions = {},
): UseAgent {
  const store = useStore(source, options);
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
  return useMemo(() => {
    const { prompt, steer, followUp, retry, takeBack, approve, deny, abort } = store;
    const methods = { prompt, steer, followUp, retry, takeBack, approve, deny, abort };
    return { ...snapshot, ...methods, store };
  }, [snapshot, store]);
}

/**
 * A part of the snapshot of a store: the component renders again when that part has changed, and not before. `select`
 * gives a part as it is, and no new object.
 */
export function useAgentState<Tool extends AgentTool, T>(
  store: AgentStore<Tool>,
  select: (snapshot: AgentSnapshot<Tool>) => T,
): T {
  const read = (): T => select(store.getSnapshot());
  return useSyncExternalStore(store.subscribe, read, read);
}

/** One store for each agent or session. It is made while rendering, and does nothing until it is subscribed to. */
function useStore(
  source: RemoteSession | LocalAgent | SharedStore,
  options: StoreOptions,
): AgentStore {
  const key =
    "connect" in source ? source.session : "agent" in source ? source.agent : source.store;
  const make = (): { key: typeof key; store: AgentStore } => {
    if ("store" in source) return { key, store: source.store };
    return { key, store: new AgentStore("agent" in source ? source.agent : source, options) };
  };
  const [made, setMade] = useState(make);
  // A page that has put the id of its new session into its address goes on with it.
  const isOwn = key !== undefined && key === made.store.getSnapshot().session;
  if (made.key === key || isOwn) return made.store;
  const next = make();
  setMade(next);
  return next.store;
}
