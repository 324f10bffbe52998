import type { Model } from "./messages.ts";

const LOOPBACK = /^\w+:\/\/(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i;

/** Whether a model runs on this machine: its `baseUrl` names the loopback interface. */
export function isLocalModel({ baseUrl }: Pick<Model, "baseUrl">): boolean {
  return baseUrl !== undefined && LOOPBACK.test(baseUrl);
}
