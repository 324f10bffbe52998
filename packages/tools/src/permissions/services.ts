import type { CommandPart, CommandParts } from "./command/parts.ts";

/** Go on until they are stopped. */
const SERVERS = new Set(
  "nodemon http-server live-server webpack-dev-server json-server caddy nginx redis-server".split(
    " ",
  ),
);
const SERVER_SCRIPTS = /^(?:start|dev|serve|server|watch|preview|develop|storybook)(?::|$)/;
const MANAGERS = new Set("npm pnpm yarn bun deno npx".split(" "));
/** Reach other programs of the user, by a socket or by their numbers. */
const SERVICE_CLIENTS = new Set(
  "kill dbus-send gdbus notify-send xclip xsel wl-copy wl-paste pbcopy loginctl systemd-run".split(
    " ",
  ),
);

/**
 * Why a command cannot run in a layer first: it is known to go on, or to reach other programs. A sentence for the
 * person who is asked. What is not known is found out by running it: a layer has neither network nor sockets.
 */
export function explainService(commands: readonly CommandParts[]): string | undefined {
  for (const part of commands.flatMap((line) => line.parts)) {
    const why = explainPart(part);
    if (why !== undefined) return why;
  }
  return undefined;
}

function explainPart({ words }: CommandPart): string | undefined {
  const [program = "", ...args] = words.map(({ text }) => text);
  const name = program.slice(program.lastIndexOf("/") + 1);
  if (SERVICE_CLIENTS.has(name)) return `"${name}" reaches other programs.`;
  const follows = name === "tail" && args.some((arg) => /^-[a-zA-Z]*[fF]/.test(arg));
  if (follows || args.some((arg) => /^--watch(?:=|$)/.test(arg))) {
    return `"${name}" goes on until it is stopped.`;
  }
  const [first, second] = args.filter((arg) => !arg.startsWith("-"));
  const script = first === "run" || first === "run-script" ? second : first;
  const isScript = MANAGERS.has(name) && SERVER_SCRIPTS.test(script ?? "");
  if (!isScript && !SERVERS.has(name)) return undefined;
  return `"${isScript ? `${name} ${script}` : name}" may be a server.`;
}
