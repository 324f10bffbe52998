import { parseUserModels, type UserModels, UserModelsError, userServices } from "@gyre/ai/models";
import { findService, resolveService, SERVICES } from "@gyre/ai/providers";

type ModelSettings = Readonly<Record<string, unknown>>;

/** Which say where a key comes from, or an address. */
const VARIABLES = ["keyEnv", "urlEnv"] as const;

/** All that is wrong with models and services in a file. */
export function modelProblems(models: ModelSettings): readonly string[] {
  try {
    parseUserModels(models, "");
    return [];
  } catch (error) {
    if (error instanceof UserModelsError) return error.problems;
    throw error;
  }
}

export interface ProjectModels {
  readonly models: ModelSettings;
  /** Parts that are not taken, with the reason. */
  readonly refused: readonly string[];
  /** Of each service that is taken: the variable whose value is sent to it as a key. */
  readonly keyVariables: Readonly<Record<string, string>>;
}

/**
 * What is taken of a trusted project's models: services that are not known otherwise, and their
 * models. A service that Gyre or the user's file knows has a key, which a project could
 * have sent elsewhere. Both arguments have no problems.
 */
export function projectModels(project: ModelSettings, users: ModelSettings = {}): ProjectModels {
  const own = parseUserModels(users, "");
  const { models, services } = parseUserModels(project, "");
  const reasons = new Map<string, string>();
  const keyVariables: Record<string, string> = {};
  for (const id of new Set([...Object.keys(services), ...models.map(({ provider }) => provider)])) {
    const variable = keyVariable(id);
    const reason = whyNot(id, variable, own, services[id] ?? {});
    if (reason !== undefined) reasons.set(id, reason);
    else keyVariables[id] = variable;
  }
  return {
    models: {
      models: models.filter(({ provider }) => !reasons.has(provider)),
      services: Object.fromEntries(Object.entries(services).filter(([id]) => !reasons.has(id))),
    },
    refused: [...reasons].map(([id, reason]) => `what it says of the service "${id}" ${reason}`),
    keyVariables,
  };
}

function whyNot(
  id: string,
  variable: string,
  own: UserModels,
  settings: object,
): string | undefined {
  if (findService(id)) return "is not used: Gyre knows that service, and its key is yours";
  const usersIds = [...Object.keys(own.services), ...own.models.map(({ provider }) => provider)];
  if (usersIds.includes(id)) return "is not used: your own file has that service";
  const named = VARIABLES.find((name) => name in settings);
  if (named !== undefined) return `is not used: a project does not say ${named}`;
  // A name in other letters may have the same variable.
  const taken = [
    ...[...SERVICES, ...userServices(own)].flatMap(({ keyEnv }) => keyEnv),
    ...usersIds.map(keyVariable),
  ];
  return taken.includes(variable)
    ? `is not used: its key would be that of ${variable}, which belongs to another service`
    : undefined;
}

/** The variable that holds the key of a service that says nothing of it. */
function keyVariable(id: string): string {
  return resolveService({ id: "", name: "", provider: id, api: "" }).keyEnv[0] ?? "";
}
