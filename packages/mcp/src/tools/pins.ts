import { createHash } from "node:crypto";
import { errorMessage } from "@gyre/ai";
import type { McpServerEntry } from "../config/config.ts";
import { isFields } from "../contract/fields.ts";
import { readPrivateJson, writePrivateJson } from "../config/private-json.ts";
import type { ListedTool } from "../client/connection.ts";

/** What a server's tools said when they were last accepted. */
interface Pin {
  /** Of how the server is started or reached. */
  config: string;
  /** Of each tool, by its own name. */
  tools: Record<string, string>;
}

/** What is not as it was accepted. */
export interface ToolChanges {
  /** Nothing is known of the server: what it says now is to be accepted. */
  isNew: boolean;
  /** Names of tools that say something else than before. */
  changed: string[];
  /** Names of tools that were not there before. */
  added: string[];
}

/** Where it is remembered what tools said. */
export interface PinStore {
  /**
   * What is not as it was. A server that was never seen, or that is configured in another
   * way by now, is taken as it is: who configures it trusts it.
   */
  compare(server: McpServerEntry, tools: readonly ListedTool[]): ToolChanges;
  /** From now on this is how these tools were. */
  accept(server: McpServerEntry, tools: readonly ListedTool[]): void;
}

/** The file of pins cannot be used. */
export class PinFileError extends Error {
  readonly code = "bad_pin_file";
}

/** Pins that last as long as the process. */
export function memoryPins(): PinStore {
  const pins: Record<string, Pin> = {};
  return pinsIn({ read: () => pins, write: (next) => void Object.assign(pins, next) });
}

/** Pins in a file, its owner's alone. Its methods throw `PinFileError`. */
export function filePins(path: string): PinStore {
  return pinsIn({ read: () => readPins(path), write: (pins) => writePins(path, pins) });
}

interface Storage {
  read: () => Readonly<Record<string, Pin>>;
  write: (pins: Record<string, Pin>) => void;
}

function pinsIn({ read, write }: Storage): PinStore {
  return {
    compare(server, tools) {
      const pin = known(read(), server);
      const changes: ToolChanges = { isNew: !pin, changed: [], added: [] };
      for (const tool of pin ? tools : []) {
        const before =
          pin && Object.hasOwn(pin.tools, tool.name) ? pin.tools[tool.name] : undefined;
        if (before === undefined) changes.added.push(tool.name);
        else if (before !== hashOfTool(tool)) changes.changed.push(tool.name);
      }
      return changes;
    },
    accept(server, tools) {
      const pins = read();
      const before = known(pins, server);
      const hashes = Object.fromEntries(tools.map((tool) => [tool.name, hashOfTool(tool)]));
      // A tool that is gone for a while has to be the same when it comes back.
      const pin: Pin = { config: hashOfConfig(server), tools: { ...before?.tools, ...hashes } };
      if (JSON.stringify(pin) === JSON.stringify(before)) return;
      write({ ...pins, [formatKey(server)]: pin });
    },
  };
}

function known(pins: Readonly<Record<string, Pin>>, server: McpServerEntry): Pin | undefined {
  const key = formatKey(server);
  const pin = Object.hasOwn(pins, key) ? pins[key] : undefined;
  return pin?.config === hashOfConfig(server) ? pin : undefined;
}

function formatKey({ name, scope }: McpServerEntry): string {
  return `${scope}#${name}`;
}

/** Of what decides which program or service answers; not of how it is used here. */
function hashOfConfig({ config }: McpServerEntry): string {
  const { disabled: _, timeout: _1, tools: _2, direct: _3, ...how } = config;
  return hash(how);
}

/** Of all that a model gets to know of it. */
export function hashOfTool({ name, description, inputSchema }: ListedTool): string {
  return hash([name, description ?? "", inputSchema]);
}

function hash(value: unknown): string {
  return createHash("sha256").update(canonical(value)).digest("hex");
}

/** JSON with keys in order: a server may list them in another one each time. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function readPins(path: string): Record<string, Pin> {
  const value = orPinFileError(() => readPrivateJson(path)) ?? {};
  // Taken for empty, it would have everything accepted again.
  if (!isFields(value)) throw new PinFileError(`${path} is broken: fix or remove it.`);
  const entries = Object.entries(value).filter((entry): entry is [string, Pin] => isPin(entry[1]));
  return Object.fromEntries(entries);
}

function writePins(path: string, pins: Readonly<Record<string, Pin>>): void {
  orPinFileError(() => writePrivateJson(path, pins));
}

function orPinFileError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new PinFileError(errorMessage(error), { cause: error });
  }
}

function isPin(value: unknown): value is Pin {
  if (typeof value !== "object" || value === null) return false;
  if (!("config" in value) || !("tools" in value)) return false;
  return typeof value.config === "string" && typeof value.tools === "object" && !!value.tools;
}
