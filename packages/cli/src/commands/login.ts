import { nearNames } from "@gyre/ai";
import { createKeyStore, KeyFileError, type KeyStore } from "@gyre/ai/node";
import { type ServicePreset, SERVICES } from "@gyre/ai/providers";
import { readSecret } from "./ask-secret.ts";
import { splitCommand } from "./command-words.ts";
import { EXIT, ExitError, UsageError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import { environmentKeys, keyFilePath } from "@gyre/coding/internal/models/service-places";
import type { Settings } from "@gyre/coding/internal/settings/settings";

/** What `runLogin` takes from elsewhere; for tests. */
export interface LoginParts {
  settings?: Pick<Settings, "models">;
}

/**
 * `gyre login SERVICE`: stores the key that comes from standard input, or with `--command`
 * a program that prints it. Shows where, never what. Throws `UsageError` or `ExitError`.
 */
export async function runLogin(
  args: readonly string[],
  values: Values,
  io: Io,
  parts: LoginParts = {},
): Promise<number> {
  const service = await namedService(args, "login", () => ownServices(values, io, parts));
  const keys = openKeyStore(io);
  const file = keyFilePath(io.env);
  if (values.command !== undefined) {
    const command = splitCommand(values.command);
    if (command.length === 0) throw new UsageError("--command names no program.");
    await stored(keys.setCommand(service.id, command));
    io.stdout.write(
      `The key for ${service.name} is what ${command[0]} prints: noted in ${file}.\n`,
    );
  } else {
    const isAsked = !service.keyless || !io.stdin.isTTY;
    const key = isAsked ? await readSecret(io, `Key for ${service.name} (not shown): `) : "";
    if (key === "" && service.keyless) {
      io.stdout.write(`${service.name} needs no key. If your server asks for one, pipe it in.\n`);
      return EXIT.done;
    }
    if (key === "") {
      throw new ExitError(
        EXIT.failed,
        "There was no key, and nothing was stored. Pipe it in, or type it.",
      );
    }
    await stored(keys.set(service.id, key));
    io.stdout.write(
      `The key for ${service.name} was stored in ${file}, which only you can read.\n`,
    );
  }
  const before = environmentKeys(io.env).get(service.id);
  if (before) {
    io.stderr.write(`${before.place} is set in the environment, and takes precedence over it.\n`);
  }
  return EXIT.done;
}

/** `gyre logout SERVICE`: removes what `login` stored. Ends with 1 if there was nothing. */
export async function runLogout(args: readonly string[], _values: Values, io: Io): Promise<number> {
  const service = await namedService(args, "logout", () => storedServices(io));
  const removed = await stored(openKeyStore(io).remove(service.id));
  const file = keyFilePath(io.env);
  if (removed) io.stdout.write(`The key for ${service.name} was removed from ${file}.\n`);
  else io.stderr.write(`There was no key for ${service.name} in ${file}.\n`);
  const left = environmentKeys(io.env).get(service.id);
  if (left) io.stderr.write(`${left.place} is still set in the environment.\n`);
  return removed ? EXIT.done : EXIT.failed;
}

function openKeyStore(io: Io): KeyStore {
  return createKeyStore({ env: io.env, file: keyFilePath(io.env) });
}

async function storedServices(io: Io): Promise<Named[]> {
  return (await stored(openKeyStore(io).list())).map(({ service }) => ({
    id: service,
    name: service,
  }));
}

/** The services that the settings add. */
async function ownServices(values: Values, io: Io, parts: LoginParts): Promise<Named[]> {
  const { models } = parts.settings ?? (await readSettings(values, io));
  const { parseUserModels, userServices } = await import("@gyre/ai/models");
  return models === undefined ? [] : userServices(parseUserModels(models, "the settings"));
}

async function readSettings(values: Values, io: Io): Promise<Pick<Settings, "models">> {
  const { readSetup } = await import("../core/setup.ts");
  return (await readSetup(values, io)).settings;
}

/** What is wrong with a key or its file, in one line. */
async function stored<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof KeyFileError)) throw error;
    throw new ExitError(EXIT.failed, error.message, { cause: error });
  }
}

type Named = Pick<ServicePreset, "id" | "name" | "keyless">;

/** The service that the command line names; `others` are looked at if it is none of ours. */
async function namedService(
  args: readonly string[],
  command: string,
  others: () => Promise<Named[]>,
): Promise<Named> {
  const [name, extra] = args;
  const known = SERVICES.map(({ id }) => id);
  if (name === undefined) {
    throw new UsageError(`gyre ${command} needs a service: ${known.join(", ")}.`);
  }
  if (extra !== undefined) {
    // It may be the key itself, and is not to be shown again.
    const why = command === "login" ? " A key is piped in or typed: it is no argument." : "";
    throw new UsageError(`gyre ${command} takes one service.${why}`);
  }
  const wanted = name.toLowerCase();
  const isIt = ({ id, name: title }: Named): boolean =>
    id.toLowerCase() === wanted || title.toLowerCase() === wanted;
  const service = SERVICES.find(isIt);
  if (service) return service;
  const more = await others();
  const other = more.find(isIt);
  if (other) return other;
  const near = nearNames(name, [...known, ...more.map(({ id }) => id)]);
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(" or ")}?`
      : `The services are ${known.join(", ")}.`;
  throw new UsageError(`There is no service "${name}". ${hint}`);
}
