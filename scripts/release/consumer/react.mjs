// `@gyre/react` as it is packed, with the React that its user has; and its store where there is none.
import { Agent } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { createTransportPair } from "@gyre/protocol";
import { createAgentStore } from "@gyre/react/store";
import { serveSessions } from "@gyre/server";

const script = scriptedModel(["Green."]);
const agent = new Agent({ model: script.model, protocol: script });
const [near, far] = createTransportPair();
serveSessions(far, {
  create: async () => ({ id: "tea", agent, close: async () => agent.abort() }),
  open: async () => undefined,
  list: async () => [],
});
const store = createAgentStore({ connect: async () => near });
/** @type {Promise<string[]>} */
const shown = new Promise((resolve) => {
  store.subscribe(({ status, messages }) => {
    if (status === "idle" && messages.length === 2) resolve(messages.map(({ role }) => role));
  });
});
await store.prompt("Which tea?");
const roles = await shown;
await store.close();
const hasReact = process.argv.includes("--react");
if (!hasReact) {
  const missing = await import("@gyre/react").then(
    () => "",
    (error) => String(error),
  );
  if (!missing.includes("react")) throw new Error(`There is a React: ${missing}`);
} else {
  const { createElement, version } = await import("react");
  const { renderToStaticMarkup } = await import("react-dom/server");
  const { useAgent } = await import("@gyre/react");
  const Chat = () =>
    useAgent({ agent }).messages.map(({ id }) => createElement("p", { key: id }, id));
  const page = renderToStaticMarkup(createElement(Chat));
  if (page !== "<p>m0</p><p>m1</p>") throw new Error(page);
  console.log(`rendered with React ${version}`);
}
console.log(`a store ${hasReact ? "with" : "without"} React: ${roles.join(", ")}`);
