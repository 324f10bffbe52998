// A plugin for gyre: a tool, a command and a hook. Put its path into the settings as
// "plugins": ["./tea.mjs"], from the folder of the settings file.

/** Minutes. */
const TIMES = { black: 4, green: 2, mint: 7 };

/**
 * @param {import("@gyre/tools").PluginRegistry} registry
 * @param {import("@gyre/tools").PluginApi} api
 */
export function registerTools(registry, api) {
  const describeTime = (/** @type {string} */ kind) => {
    const minutes = new Map(Object.entries(TIMES)).get(kind);
    if (minutes === undefined) throw new Error(`There is no ${kind} tea.`);
    return `${kind} tea takes ${minutes} minutes.`;
  };
  registry.register({
    name: "steep",
    description: "Gives the time that a kind of tea takes.",
    parameters: {
      type: "object",
      properties: { kind: { type: "string", enum: Object.keys(TIMES) } },
      required: ["kind"],
    },
    // It touches nothing, and so it needs no approval.
    access: () => ({ kind: "none", targets: [], summary: "Look up a tea" }),
    execute: (args) => describeTime(String(Object(args).kind)),
  });
  api.command({ name: "tea", about: "how long a tea takes", hint: "a kind", run: describeTime });
  api.hook("UserPromptSubmit", ({ prompt }) =>
    prompt?.includes("coffee") ? { block: "Only tea is served here." } : undefined,
  );
}
