import { errorMessage } from "@gyre/ai";
import type { Session, SessionStorage } from "@gyre/sessions";
import type { AskQuestion, McpServerEntry } from "@gyre/mcp";
import type { ModelChoice } from "@gyre/coding/internal/text/choices";
import type { Approvals, Harness } from "@gyre/coding/internal/harness/harness";
import type { Environment, Io } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import type { Values } from "../../core/options.ts";

export interface AcpFolder {
  /** Makes an agent for this folder. Throws an error with a message for the user, `ExitError` with `EXIT.auth` for a missing key. */
  open(options: {
    approvals: Approvals;
    answerServer?: AskQuestion;
    session?: Session;
    /** Those of the editor, beside the ones that are set. */
    mcpServers?: readonly McpServerEntry[];
  }): Promise<Harness>;
  /** Absent: nothing is written down. */
  store?: SessionStorage;
  env?: Environment;
  /** What each source of the settings says. */
  layers?: Setup["layers"];
  settings?: Setup["settings"];
  /** The models that there is a key for. */
  models(): Promise<readonly ModelChoice[]>;
}

/** What an ACP server makes its sessions with. Loaded when the first one is asked for. */
export interface AcpHost {
  /** What holds for a folder, which may have settings of its own. */
  folder(cwd: string): Promise<AcpFolder>;
  /** The sessions of all folders. */
  store(): Promise<SessionStorage>;
  /** What to do in order to have a key; nothing where there is one. */
  missingKey(): Promise<string | undefined>;
}

/** The host of the program itself: settings, models and sessions as for every other command. */
export function createAcpHost(values: Values, io: Io): AcpHost {
  return {
    async folder(cwd) {
      const [{ openStore, readSetup }, { openHarness }, { builtinCommands }] = await Promise.all([
        import("../../core/setup.ts"),
        import("@gyre/coding/internal/harness/harness"),
        import("../../slash-commands/builtin.ts"),
      ]);
      const setup = await readSetup({ ...values, cwd }, io);
      const { settings, policy, warn } = setup;
      const isKept = settings.sessions !== false && !values["no-session"];
      return {
        open: ({ answerServer, approvals, session, mcpServers = [] }) =>
          openHarness({
            ...setup,
            mcpServers: withoutTaken([...(setup.mcpServers ?? []), ...mcpServers], warn),
            env: io.env,
            onForeignCode: io.onForeignCode,
            reservedCommands: builtinCommands
              .filter(({ isReplaceable }) => !isReplaceable)
              .map(({ name }) => name),
            approvals,
            ...(answerServer && { answerServer }),
            rehearse: true,
            ...(session && { session }),
          }),
        ...(isKept && { store: await openStore(io) }),
        env: io.env,
        settings,
        ...(setup.layers && { layers: setup.layers }),
        models: async () => {
          const { usableModels } = await import("@gyre/coding/internal/models/usable-models");
          return usableModels(settings, io.env, policy);
        },
      };
    },
    async store() {
      const { openStore } = await import("../../core/setup.ts");
      return openStore(io);
    },
    async missingKey() {
      const [{ readSetup }, { openModels }] = await Promise.all([
        import("../../core/setup.ts"),
        import("@gyre/coding/internal/models/models"),
      ]);
      const { settings, policy } = await readSetup(values, io);
      try {
        await (await openModels({ settings, env: io.env, policy })).current();
        return undefined;
      } catch (error) {
        return errorMessage(error);
      }
    },
  };
}

/** Of a name that is there twice the first counts. */
function withoutTaken(
  servers: readonly McpServerEntry[],
  warn: (text: string) => void,
): McpServerEntry[] {
  const names = new Set<string>();
  return servers.filter(({ name }) => {
    const isFirst = !names.has(name);
    if (!isFirst) warn(`The MCP server "${name}" of the editor is not used: there is one already.`);
    names.add(name);
    return isFirst;
  });
}
