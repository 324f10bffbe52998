import { type Clock, systemClock } from "../../common/clock.ts";
import type { Failure } from "../../messages/messages.ts";
import { keyProblem } from "./key-check.ts";
import { createKeyCommands } from "./key-command.ts";
import { KeyCommandError, KeyFileError } from "./key-error.ts";
import { defaultKeyFile, isCommand, keyEntry, readKeyFile, writeKeyFile } from "./key-file.ts";

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_TTL_MS = 300_000;

/** Where a `KeyStore` looks for keys, and how long it waits for and keeps those of commands. */
export interface KeyOptions {
  /** The variables that are looked at. Default: those of the process. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Default: `gyre/keys.json` in `XDG_CONFIG_HOME`, or else in `~/.config`. */
  file?: string;
  /** How long a command may take. Default 10 seconds. */
  timeoutMs?: number;
  /** How long the answer of a command is kept. Default 5 minutes. */
  ttlMs?: number;
  clock?: Clock;
}

/** A service that is to be asked, as far as its key goes. */
export interface KeyRequest {
  id: string;
  /** For people. */
  name: string;
  /** The variables that may hold the key; the first that is set counts. */
  keyEnv: readonly string[];
  /** It works without a key, as local servers do. */
  keyless?: boolean;
}

/** Where a key was looked for. */
export interface KeyPlace {
  /** For people: `the environment variable ANTHROPIC_API_KEY`. */
  place: string;
  /** There was something, if perhaps nothing of use. */
  found: boolean;
  /** Why it is of no use, as the end of a sentence that begins with the place. */
  problem?: string;
  /** Why nothing was found there, and what to do: sentences of their own. */
  advice?: string;
}

/** What the file has for a service: the key itself, or a command. */
export interface KeyListing {
  service: string;
  from: "file" | "command";
}

/** Finds the keys of services in the environment and in a file of the user's own. */
export interface KeyStore {
  /**
   * The key of a service, to be asked for before each request. Looks at the variables,
   * then into the file, which has the key or a command that gives it. The first place
   * that has something decides: if that is of no use, no other is tried. The file is
   * read each time, the answer of a command is kept for a while, and those who ask
   * while it runs share it. Resolves to undefined only where the service needs no key.
   *
   * Rejects with `MissingKeyError`, or with the reason of the signal.
   */
  get(service: KeyRequest, signal?: AbortSignal): Promise<string | undefined>;
  /** Writes a key into the file. Rejects with `TypeError` for what cannot be a key. */
  set(serviceId: string, key: string): Promise<void>;
  /** Writes a command into the file: a program and its arguments, run without a shell. */
  setCommand(serviceId: string, command: readonly string[]): Promise<void>;
  /** Takes a service out of the file; answers whether it was there. */
  remove(serviceId: string): Promise<boolean>;
  /** The services that the file has something for. Never the keys. */
  list(): Promise<KeyListing[]>;
}

/** There is no key, or none of use. The message says where it was looked for, and no key. */
export class MissingKeyError extends Error {
  readonly code = "missing_key";
  readonly failure: Failure = { kind: "auth", retryable: false };
  readonly looked: readonly KeyPlace[];
  constructor({ name }: Pick<KeyRequest, "name">, looked: readonly KeyPlace[]) {
    super(messageFor(name, looked));
    this.name = "MissingKeyError";
    this.looked = looked;
  }
}

/**
 * A store of keys. `set`, `setCommand` and `remove` keep what else is in the file, and
 * reject with `KeyFileError` if it cannot be read or written; one store makes its
 * changes one after the other.
 */
export function createKeyStore(options: KeyOptions = {}): KeyStore {
  const { env = process.env, timeoutMs = DEFAULT_TIMEOUT_MS, ttlMs = DEFAULT_TTL_MS } = options;
  const { file = defaultKeyFile(env), clock = systemClock } = options;
  const commands = createKeyCommands({ clock, timeoutMs, ttlMs });
  let lastChange: Promise<unknown> = Promise.resolve();

  /** `alter` answers false where it left everything as it was. */
  const change = <T>(alter: (entries: Map<string, unknown>) => T): Promise<T> => {
    const changed = lastChange.then(async () => {
      const entries = await readKeyFile(file);
      const result = alter(entries);
      if (result !== false) await writeKeyFile(file, entries);
      commands.clear();
      return result;
    });
    // A failed change rejects for its caller, and does not hold up the next.
    lastChange = changed.catch(() => {});
    return changed;
  };

  /** What the file has: a key, or the place with what is wrong there. */
  const lookIntoFile = async (
    id: string,
    signal: AbortSignal | undefined,
  ): Promise<string | KeyPlace> => {
    const place = `the key file ${file}`;
    try {
      const entry = keyEntry((await readKeyFile(file)).get(id));
      if (!entry) return { place, found: false };
      const entryPlace = `the entry "${id}" of ${place}`;
      switch (entry.type) {
        case "key":
          return usable(entryPlace, entry.key);
        case "command":
          return await commands.get(entry.command, signal);
        case "unusable":
          return { place: entryPlace, found: true, problem: entry.problem };
      }
    } catch (error) {
      if (error instanceof KeyFileError) return { place, found: true, problem: error.problem };
      if (!(error instanceof KeyCommandError)) throw error;
      const commandPlace = `the command ${error.program} for "${id}" in ${place}`;
      return { place: commandPlace, found: true, problem: error.problem };
    }
  };

  return {
    async get(service, signal) {
      signal?.throwIfAborted();
      const looked: KeyPlace[] = [];
      const decide = (found: string | KeyPlace): string => {
        if (typeof found === "string") return found;
        throw new MissingKeyError(service, [...looked, found]);
      };
      for (const name of service.keyEnv) {
        const place = `the environment variable ${name}`;
        const value = env[name];
        // An empty variable counts as unset.
        if (value !== undefined && value !== "") return decide(usable(place, value));
        looked.push({ place, found: false });
      }
      const found = await lookIntoFile(service.id, signal);
      signal?.throwIfAborted();
      if (typeof found !== "string" && !found.found && service.keyless) return undefined;
      return decide(found);
    },

    async set(serviceId, key) {
      const problem = keyProblem(key);
      if (problem !== undefined) throw new TypeError(`The key for "${serviceId}" ${problem}.`);
      await change((entries) => entries.set(serviceId, key));
    },

    async setCommand(serviceId, command) {
      if (!isCommand(command)) {
        throw new TypeError(`The command for "${serviceId}" must begin with a program.`);
      }
      await change((entries) => entries.set(serviceId, { command }));
    },

    remove: (serviceId) => change((entries) => entries.delete(serviceId)),

    async list() {
      const services: KeyListing[] = [];
      for (const [service, value] of await readKeyFile(file)) {
        const type = keyEntry(value)?.type;
        if (type === "key") services.push({ service, from: "file" });
        else if (type === "command") services.push({ service, from: "command" });
      }
      return services;
    },
  };
}

function usable(place: string, key: string): string | KeyPlace {
  const problem = keyProblem(key);
  return problem === undefined ? key : { place, found: true, problem };
}

function messageFor(name: string, looked: readonly KeyPlace[]): string {
  const unusable = looked.find(({ problem }) => problem !== undefined);
  if (unusable) return `The key for ${name} cannot be used: ${unusable.place} ${unusable.problem}.`;
  const places = looked.map(({ place }) => place).join(", nor in ");
  const advice = looked.flatMap((each) => (each.advice === undefined ? [] : [` ${each.advice}`]));
  return `There is no key for ${name}: not in ${places}. Put it into one of them, or pass it as the option apiKey.${advice.join("")}`;
}
