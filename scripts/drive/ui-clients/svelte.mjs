import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Agent } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { createAgentStore } from "@gyre/react/store";
import { compare, load } from "./shared.mjs";

/**
 * @typedef {import("./shared.mjs").Plan} Plan
 * @typedef {import("./shared.mjs").Findings} Findings
 */

/** The component that the guide shows. */
function readComponent() {
  const page = readFileSync(new URL("../../../docs/react.md", import.meta.url), "utf8");
  const [, component] = /^```svelte\n([\s\S]*?)^```$/m.exec(page) ?? [];
  if (component === undefined) throw new Error("docs/react.md has no component of Svelte.");
  return component;
}

/**
 * A store of an agent is one of Svelte: `$store` of a component reads it, and so does what is derived from it.
 *
 * @param {Plan} plan
 * @returns {Promise<Findings>}
 */
export async function checkSvelte(plan) {
  const [{ default: compiler }, { render }, { derived, get }] = await Promise.all([
    load(plan, "svelte/compiler"),
    load(plan, "svelte/server"),
    load(plan, "svelte/store"),
  ]);
  const file = join(plan.folder, "chat.mjs");
  writeFileSync(file, compiler.compile(readComponent(), { generate: "server" }).js.code);
  const { default: Chat } = await import(pathToFileURL(file).href);
  const script = scriptedModel(["Green."]);
  const agent = new Agent({ model: script.model, protocol: script });
  /** @type {(() => void)[]} */
  const frames = [];
  const store = createAgentStore(agent, {
    schedule: (flush) => {
      frames.push(flush);
      return () => {};
    },
  });
  const draw = () => frames.splice(0).forEach((flush) => flush());
  const show = () =>
    render(Chat, { props: { store } })
      .body.replaceAll(/<!--.*?-->/g, "")
      .replaceAll(/\s+/g, " ")
      .trim();
  /** @type {string[]} */
  const statuses = [];
  const leave = derived(store, (/** @type {{ status: string }} */ { status }) => status).subscribe(
    (/** @type {string} */ status) => statuses.push(status),
  );
  const sent = store.prompt("Which tea?");
  draw();
  const running = show();
  await sent;
  draw();
  leave();
  const ask = "<button>Ask</button>";
  return {
    problems: [
      ...compare("while it runs", running, `<p>user: Which tea?</p> <button>Stop</button> ${ask}`),
      ...compare("at the end", show(), `<p>user: Which tea?</p><p>assistant: Green.</p> ${ask}`),
      ...compare("derived", statuses, ["idle", "running", "idle"]),
      ...compare("get", get(store).messages.length, 2),
    ],
    figures: ["a component that is compiled reads the store"],
  };
}
