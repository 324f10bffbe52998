import { TOOLS } from "@gyre/tools/catalog";
import { type Mcp, type McpChanges, McpError, PinFileError } from "@gyre/mcp";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import { createReadable, createWritable } from "../../core/streams.ts";
import { openProgramMcp } from "@gyre/coding/internal/mcp/open";
import { changedTools, mcpStateText, NO_SERVERS, plain, trustedText } from "../../text/mcp-text.ts";
import { TOOL_GROUPS } from "@gyre/coding/internal/core/tool-lists";
import type { Values } from "../../core/options.ts";
import { openStore, readSetup, type Setup } from "../../core/setup.ts";
import { version } from "@gyre/coding/internal/core/version";

const ACTIONS = ["list", "add", "remove", "login", "logout", "trust", "serve"] as const;
/** What `gyre mcp serve` offers unless the settings name others: what only reads. */
export const SERVED_TOOLS: readonly string[] = TOOLS.filter(
  ({ presentation }) => presentation.effects?.({}).reads,
).map(({ name }) => name);
const INDENT = 2;

/** `gyre mcp [list]`, and what else the table of commands has. */
export async function runMcp(args: readonly string[], values: Values, io: Io): Promise<ExitCode> {
  const [action = "list", ...rest] = args;
  const known = ACTIONS.find((one) => one === action);
  if (!known) throw new UsageError(`"mcp" takes one of: ${ACTIONS.join(", ")}; not "${action}".`);
  if (known === "add" || known === "remove") {
    const { runAdd, runRemove } = await import("./edit.ts");
    return known === "add" ? runAdd(rest, values, io) : runRemove(rest, values, io);
  }
  const [name, more] = rest;
  const isNamed = known === "trust" || known === "login" || known === "logout";
  const most = isNamed ? more : name;
  if (most !== undefined) throw new UsageError(`"mcp ${known}" takes no argument "${most}".`);
  if (isNamed && name === undefined) {
    throw new UsageError(`"mcp ${known}" takes the name of a server.`);
  }
  const setup = await readSetup(values, io);
  if (known === "serve") return serve(setup, values, io);
  const { mcpServers: servers = [], cwd } = setup;
  const login = await import("./login.ts");
  // What it would warn of is in the list.
  const mcp = await openProgramMcp({
    ...{ servers, cwd, env: io.env, warn: () => {} },
    ...(known === "login" && { openLogin: login.openTerminalLogin(io) }),
  });
  const stop = (): void => void mcp.close();
  io.signal.addEventListener("abort", stop, { once: true });
  try {
    switch (known) {
      case "list":
        return await list(mcp, values, io);
      case "trust":
        return await trust(mcp, name ?? "", io);
      case "login":
        return await login.logIn(mcp, name ?? "", io);
      case "logout":
        return login.logOut(mcp, name ?? "", io);
    }
  } finally {
    io.signal.removeEventListener("abort", stop);
    await mcp.close();
  }
}

async function list(mcp: Mcp, { json = false }: Values, io: Io): Promise<ExitCode> {
  await mcp.connect();
  const status = mcp.status();
  if (json) {
    io.stdout.write(`${JSON.stringify(status, undefined, INDENT)}\n`);
    return EXIT.done;
  }
  if (status.length === 0) {
    io.stdout.write(`${NO_SERVERS}\n`);
    return EXIT.done;
  }
  const width = Math.max(...status.map(({ name }) => plain(name).length));
  for (const server of status) {
    io.stdout.write(
      `${plain(server.name).padEnd(width)}  ${server.kind.padEnd(5)}  ${mcpStateText(server, "gyre mcp trust")}\n`,
    );
  }
  return EXIT.done;
}

async function trust(mcp: Mcp, name: string, io: Io): Promise<ExitCode> {
  let changes: McpChanges;
  try {
    changes = await mcp.accept(name);
  } catch (error) {
    if (!(error instanceof McpError || error instanceof PinFileError)) throw error;
    throw new ExitError(EXIT.failed, plain(error.message), { cause: error });
  }
  for (const { name: tool, what, says } of changedTools(changes)) {
    const lines = says.split("\n").map((line) => " ".repeat(INDENT) + line);
    io.stdout.write(`${tool} (${what}):\n${lines.join("\n")}\n`);
  }
  io.stdout.write(`${trustedText(name, changes)}\n`);
  return EXIT.done;
}

/**
 * Offers our tools on standard input and output, under permissions, and skills, commands and sessions to read. No person
 * can be asked.
 */
async function serve(setup: Setup, values: Values, io: Io): Promise<ExitCode> {
  const { settings, explicit, cwd, policy, warn } = setup;
  const [{ getConfinement, openToolset, permissions }, { serveMcp }, { createOffer }] =
    await Promise.all([import("@gyre/tools"), import("@gyre/mcp"), import("./serve-offer.ts")]);
  // Settings for an agent of the user's own say nothing of what others may have.
  const named = explicit.has("tools") ? (settings.tools ?? SERVED_TOOLS) : SERVED_TOOLS;
  const tools = named.filter((name) => !TOOL_GROUPS.includes(name));
  const wanted = explicit.has("mode") ? (settings.mode ?? "ask") : "ask";
  const mode = policy?.lowerMode(wanted) ?? wanted;
  policy?.assertFolder(cwd);
  const { allow = [], ask = [], deny = [], network = false, sandbox = "auto" } = settings;
  const offer = await createOffer({
    ...{ cwd, settings, warn, env: io.env },
    ...(!values["no-session"] && { store: await openStore(io) }),
  });
  const toolset = await openToolset({
    root: cwd,
    tools,
    sandbox: sandbox === "auto" ? "any" : sandbox,
    network,
    ...(policy?.mostDomains && { mostDomains: policy.mostDomains }),
    environment: io.env,
    ...(setup.trusted && { readOnlyFiles: setup.trusted.places }),
  });
  try {
    const guard = permissions({
      mode,
      rules: { allow: [...allow], ask: [...ask], deny: [...deny] },
      headless: true,
      sandboxed: async () => getConfinement(await toolset.env.sandbox()),
      workspace: toolset.env.workspace,
      ...policy?.guards,
    });
    await serveMcp({
      ...offer,
      tools: toolset.registry.list(),
      middleware: [guard],
      version: version(),
      stdin: createReadable(io.stdin),
      stdout: createWritable(io.stdout),
      signal: io.signal,
      warn,
    });
  } finally {
    await toolset.close();
  }
  return EXIT.done;
}
