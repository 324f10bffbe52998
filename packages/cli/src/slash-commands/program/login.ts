import { nearNames } from "@gyre/ai";
import { type KeyService, listKeyServices, storeKey } from "../../modes/tui/start/no-key.ts";
import type { CommandContext } from "@gyre/coding/internal/conversation/command";
import type { Environment } from "../../core/io.ts";

interface LoginContext extends Pick<CommandContext, "choose"> {
  env: Environment;
  askSecret?: (title: string) => Promise<string | undefined>;
}

/** Asks for the key of a service, and stores it as `gyre login` does. */
export async function storeServiceKey(
  rest: string,
  context: LoginContext,
): Promise<string | undefined> {
  const { askSecret, env } = context;
  const service = await findService(rest, context);
  if (!service) return undefined;
  const key = await askSecret?.(`Key for ${service.name} (not shown)`);
  if (key === undefined || key.trim() === "") return "No key was stored.";
  return storeKey(service, key, env);
}

async function findService(
  name: string,
  { choose }: LoginContext,
): Promise<KeyService | undefined> {
  const services = await listKeyServices();
  if (name === "") {
    return choose({
      title: "A key for which service?",
      choices: services.map((value) => ({ value, label: value.name, detail: value.id })),
      filter: true,
    });
  }
  const wanted = name.toLowerCase();
  const found = services.find((each) => each.id === wanted || each.name.toLowerCase() === wanted);
  if (found) return found;
  const ids = services.map(({ id }) => id);
  const near = nearNames(name, ids);
  const hint =
    near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `There are ${ids.join(", ")}.`;
  throw new Error(`There is no service "${name}". ${hint}`);
}
