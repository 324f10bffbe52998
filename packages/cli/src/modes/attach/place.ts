import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { errnoOf, errorMessage, toUrl } from "@gyre/ai";
import { TRANSPORTS } from "@gyre/protocol/node";
import { UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { defaultTokenFile, isLoopback } from "../serve/options.ts";
import type { SessionWish } from "./remote-opener.ts";

/** Where the token is read from if no option says so. */
const TOKEN_VARIABLE = "GYRE_TOKEN";
const ENCRYPTED: ReadonlySet<string> = new Set(["wss:", "https:"]);

/** What a command line asks to attach to. */
export interface AttachPlace {
  address: string;
  token: string;
  session: string | undefined;
  wish: SessionWish;
  /** What others on the way could read. */
  warnings: readonly string[];
  /** The command that comes back to a session. */
  describeReturn: (session: string) => string;
}

/** Reads it. Throws `UsageError`. */
export async function readAttachPlace(
  args: readonly string[],
  values: Values,
  io: Pick<Io, "cwd" | "env">,
): Promise<AttachPlace> {
  const [given, session, ...more] = args;
  if (given === undefined) {
    throw new UsageError("attach needs the address that gyre serve prints: ws://127.0.0.1:7420");
  }
  if (more.length > 0)
    throw new UsageError(`attach takes an address and a session, not "${more[0]}".`);
  const url = readAddress(given);
  const wish = readWish(values);
  const asked = Object.keys(wish);
  if (session !== undefined && asked.length > 0) {
    throw new UsageError(
      `--${asked[0] === "thinkingLevel" ? "thinking" : asked[0]} is for a new session, and "${session}" names one.`,
    );
  }
  const { hostname } = url;
  const isHere = isLoopback(hostname.replace(/^\[|\]$/g, ""));
  const isOpen = !isHere && !ENCRYPTED.has(url.protocol);
  const file = values["token-file"];
  return {
    address: given.includes("://") ? given : url.href,
    token: await readToken(values, io, isHere),
    session,
    wish,
    warnings: isOpen
      ? [`Others on the way to ${hostname} can read along: ${url.protocol}// is not encrypted.`]
      : [],
    describeReturn: (id) =>
      ["gyre attach", given, id, ...(file === undefined ? [] : ["--token-file", file])].join(" "),
  };
}

/** An address without a scheme is that of a WebSocket. */
function readAddress(given: string): URL {
  const url = toUrl(given.includes("://") ? given : `ws://${given}`);
  const schemes = Object.keys(TRANSPORTS).map((scheme) => `${scheme}//`);
  if (url && Object.hasOwn(TRANSPORTS, url.protocol) && url.hostname !== "") return url;
  throw new UsageError(
    `"${given}" is no address of a server. Write one as ws://127.0.0.1:7420; it begins with ${schemes.join(", ")}.`,
  );
}

function readWish({ cwd, model, thinking, mode }: Values): SessionWish {
  return {
    ...(cwd !== undefined && { cwd }),
    ...(model !== undefined && { model }),
    ...(thinking !== undefined && { thinkingLevel: thinking }),
    ...(mode !== undefined && { mode }),
  };
}

/** The token of this computer's own server is sent to no other one. */
async function readToken(
  { token, "token-file": file }: Values,
  { cwd, env }: Pick<Io, "cwd" | "env">,
  isHere: boolean,
): Promise<string> {
  if (token !== undefined && file !== undefined) {
    throw new UsageError("--token and --token-file cannot be used together.");
  }
  if (token !== undefined) return token;
  if (file !== undefined) return readTokenFile(resolve(cwd, file));
  const variable = env[TOKEN_VARIABLE];
  if (variable) return variable;
  if (isHere) {
    const found = await readTokenFile(defaultTokenFile(env)).catch((error: unknown) => {
      if (error instanceof UsageError && errnoOf(error.cause) === "ENOENT") return undefined;
      throw error;
    });
    if (found !== undefined) return found;
  }
  throw new UsageError(
    `There is no token for the server. Put it into the variable ${TOKEN_VARIABLE}, or into a file: --token-file FILE`,
  );
}

async function readTokenFile(path: string): Promise<string> {
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (token !== "") return token;
  } catch (error) {
    throw new UsageError(`The token cannot be read: ${errorMessage(error)}`, { cause: error });
  }
  throw new UsageError(`${path} has no token in it.`);
}
