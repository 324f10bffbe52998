import { errorMessage } from "@gyre/ai";
import type { KeyStore } from "@gyre/ai/node";
import { environmentKeys, keyFilePath } from "@gyre/coding/internal/models/service-places";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import type { Environment } from "../../../core/io.ts";
import type { Choice, PanelQuestion, Ui } from "../ui/ui.ts";
import type { LocalServer } from "./local-servers.ts";
import { SCRIPTED_LABEL } from "./scripted-label.ts";

/** The most models that the line of a server names. */
const NAMED_MODELS = 3;
/** The services whose variables are shown as examples. */
const EXAMPLES = ["anthropic", "openai", "google", "openrouter"];

/** The choices of a user without a model. */
export type NoKeyAnswer =
  | { do: "scripted" }
  | { do: "server"; server: LocalServer }
  | { do: "store" }
  | { do: "explain" }
  | { do: "leave" };

/** The decision of the user. */
export type ModelChoice =
  /** The scripted model. */
  | { type: "scripted" }
  /** This model, with these variables added to the environment. */
  | { type: "model"; name: string; variables: Readonly<Record<string, string>> }
  /** A key was stored: start as if it had been there. */
  | { type: "key" }
  | { type: "leave" };

/** A service that a key can be stored for. */
export interface KeyService {
  id: string;
  name: string;
  /** The variables that take precedence over the key file. */
  variables: readonly string[];
}

/**
 * Whether there is a model: one is set, or a service has a key. Rejects with `KeyFileError` where the key file cannot
 * be used and no variable has a key.
 */
export async function hasModel(
  { model }: Pick<Settings, "model">,
  env: Environment,
  keys?: Pick<KeyStore, "list">,
): Promise<boolean> {
  if (model !== undefined) return true;
  const { defaultModel } = await import("@gyre/coding/internal/models/default-model");
  const { createKeyStore } = await import("@gyre/ai/node");
  return (await defaultModel(env, keys ?? createKeyStore({ env }))) !== undefined;
}

/** The lines above the question. */
export function noKeyLines(servers: readonly LocalServer[]): readonly [string, string, string] {
  const [first] = servers;
  return [
    "There is no model to ask yet: no service has a key here.",
    first
      ? `${first.name} answers on this machine, and needs none.`
      : "No local server answers either (Ollama, LM Studio, llama.cpp, vLLM).",
    "You can look around with a scripted model: it needs no key and no network.",
  ];
}

export function noKeyQuestion(servers: readonly LocalServer[]): PanelQuestion<NoKeyAnswer> {
  const local = servers.map((server): Choice<NoKeyAnswer> => ({
    value: { do: "server", server },
    label: `Use ${server.name} at ${server.place}`,
    detail: formatModelNames(server),
  }));
  return {
    title: "How do you want to begin?",
    choices: [
      ...local,
      { value: { do: "scripted" }, label: "Try the scripted model", detail: "no key, no network" },
      { value: { do: "store" }, label: "Store a key", detail: "as gyre login does" },
      { value: { do: "explain" }, label: "How to set a key" },
      { value: { do: "leave" }, label: "Leave" },
    ],
  };
}

function formatModelNames({ models, service }: LocalServer): string {
  const names = models.slice(0, NAMED_MODELS).map((model) => model.slice(service.length + 1));
  return names.join(", ") + (models.length > NAMED_MODELS ? " …" : "");
}

/** The services that need one key. */
export async function listKeyServices(): Promise<KeyService[]> {
  const { SERVICES } = await import("@gyre/ai/providers");
  const { DEFAULT_MODELS } = await import("@gyre/coding/internal/models/default-model");
  const order = Object.keys(DEFAULT_MODELS);
  return SERVICES.filter(({ id, keyEnv }) => order.includes(id) && keyEnv.length > 0)
    .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
    .map(({ id, keyEnv, name }) => ({ id, name, variables: keyEnv }));
}

/**
 * Stores a key in the same file as `gyre login`. Returns a sentence with its path, throws an error for the user;
 * neither contains the key.
 */
export async function storeKey(
  { id, name }: KeyService,
  key: string,
  env: Environment,
): Promise<string> {
  const { createKeyStore } = await import("@gyre/ai/node");
  const file = keyFilePath(env);
  await createKeyStore({ env, file }).set(id, key.trim());
  const before = environmentKeys(env).get(id);
  const note = before
    ? ` ${before.place} is set in the environment, and takes precedence over it.`
    : "";
  return `The key for ${name} was stored in ${file}, which only you can read.${note}`;
}

/** How to configure a model, as Markdown. */
export function howToSetKey(services: readonly KeyService[]): string {
  const examples = EXAMPLES.flatMap((id) => services.find((service) => service.id === id) ?? []);
  const lines = examples.map(({ name, variables }) => `export ${variables[0]}=...   # ${name}`);
  return `A key of one service is enough. In the environment, before \`gyre\` is started:

\`\`\`sh
${lines.join("\n")}
\`\`\`

Or stored once, in a file that only you can read:

\`\`\`sh
gyre login anthropic
\`\`\`

Or without a key, with a server on this machine:

\`\`\`sh
ollama serve
gyre --model ollama/NAME
\`\`\`
`;
}

export interface NoKeyContext {
  ui: Pick<Ui, "choose" | "say" | "warn">;
  env: Environment;
  servers: readonly LocalServer[];
  /** Asks for a secret. Undefined where the user leaves the question. */
  askSecret: (title: string) => Promise<string | undefined>;
}

/**
 * Explains that there is no model, and asks until there is one or the user wants to leave. Esc returns to the first
 * question, and leaves that one.
 */
export async function askForModel(context: NoKeyContext): Promise<ModelChoice> {
  const { servers, ui } = context;
  ui.say(noKeyLines(servers).join("\n\n"));
  for (;;) {
    const answer = (await ui.choose(noKeyQuestion(servers))) ?? { do: "leave" };
    switch (answer.do) {
      case "leave":
        return { type: "leave" };
      case "scripted":
        ui.say(`This is a ${SCRIPTED_LABEL}.`);
        return { type: "scripted" };
      case "server": {
        const { models, service, variables } = answer.server;
        const choices = models.map((value) => ({ value, label: value.slice(service.length + 1) }));
        const title = `Which model of ${answer.server.name}?`;
        const name =
          models.length === 1 ? models[0] : await ui.choose({ title, choices, filter: true });
        if (name !== undefined) return { type: "model", name, variables };
        break;
      }
      case "store":
        if (await askForKey(context)) return { type: "key" };
        break;
      case "explain":
        ui.say(howToSetKey(await listKeyServices()));
        break;
    }
  }
}

/** Returns whether a key was stored. */
async function askForKey({ askSecret, env, ui }: NoKeyContext): Promise<boolean> {
  const services = await listKeyServices();
  const service = await ui.choose({
    title: "A key for which service?",
    choices: services.map((value) => ({ value, label: value.name, detail: value.id })),
    filter: true,
  });
  if (!service) return false;
  const key = await askSecret(`Key for ${service.name} (not shown)`);
  if (key === undefined || key.trim() === "") return false;
  try {
    ui.say(await storeKey(service, key, env));
    return true;
  } catch (error) {
    ui.warn(errorMessage(error));
    return false;
  }
}
