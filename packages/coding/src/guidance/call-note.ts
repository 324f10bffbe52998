import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toRecord } from "@gyre/ai";
import { describeHost, isHostGone } from "@gyre/tools";
import { realPath } from "../settings/project-file.ts";
import { readSmallFile } from "../settings/file.ts";
import { type AgentTexts, hashText } from "./agent-texts.ts";
import { type GuidanceFiles, GuidanceFinder, type GuidancePlaces } from "./guidance-files.ts";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;

/** What there was before calls that may write texts for agents. */
export interface CallState {
  /** Where further texts may come to be; absent: only those of `files` are written. */
  places?: GuidancePlaces;
  files: GuidanceFiles;
  /** Of the texts that are in use: one of these is the user's, wherever it is. */
  inUse: readonly string[];
}

/**
 * A note on disk that calls run which may write texts for agents: if this process is killed,
 * `recordKilledCalls` finds what they wrote. Nothing is noted off Linux, where it cannot be known
 * whether a process still runs.
 */
export class CallNote {
  readonly #folder: string;
  readonly #name = `${randomUUID()}.json`;

  constructor(folder: string) {
    this.#folder = folder;
  }

  write({ places, files, inUse }: CallState): void {
    const host = describeHost();
    if (host === undefined) return;
    const state = { ...(places && { places }), files: [...files], inUse };
    try {
      mkdirSync(this.#folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
      const text = `${host.trim()}\n${JSON.stringify(state)}\n`;
      writeFileSync(join(this.#folder, this.#name), text, { mode: OWNER_ONLY });
    } catch {
      // Where this cannot be written, texts cannot be recorded either: that is reported for each.
    }
  }

  remove(): void {
    rmSync(join(this.#folder, this.#name), { force: true });
  }
}

/** Records what calls wrote whose process was killed before it could. */
export function recordKilledCalls(folder: string, texts: AgentTexts): void {
  for (const name of listNotes(folder)) {
    const path = join(folder, name);
    const read = readSmallFile(path);
    if (!read || "problem" in read) continue;
    const [host = "", rest = ""] = read.content.toString("utf8").split("\n");
    if (!isHostGone(`${host}\n`)) continue;
    const state = parseState(rest);
    if (state) recordChanges(state, texts);
    rmSync(path, { force: true });
  }
}

function recordChanges({ places, files, inUse }: CallState, texts: AgentTexts): void {
  const finder = new GuidanceFinder(places ?? { whole: ["/"], single: [] });
  const after = places ? finder.find() : finder.refresh(files);
  for (const [path, identity] of after) {
    if (files.get(path) === identity) continue;
    const real = realPath(path);
    const read = readSmallFile(real);
    if (!read || "problem" in read || inUse.includes(hashText(read.content))) continue;
    texts.add(read.content, { path: real });
  }
}

function listNotes(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(".json"));
  } catch {
    // It was never made: no call was noted by this user.
    return [];
  }
}

/** Undefined for a note that was cut off, before its calls began. */
function parseState(text: string): CallState | undefined {
  let fields: Readonly<Record<string, unknown>>;
  try {
    fields = toRecord(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  const { files, inUse, places } = fields;
  if (!Array.isArray(files) || !Array.isArray(inUse)) return undefined;
  const known = files.filter(
    (each): each is [string, string] =>
      Array.isArray(each) && typeof each[0] === "string" && typeof each[1] === "string",
  );
  const where = parsePlaces(places);
  return {
    files: new Map(known),
    inUse: inUse.filter((hash) => typeof hash === "string"),
    ...(where && { places: where }),
  };
}

function parsePlaces(value: unknown): GuidancePlaces | undefined {
  const { whole, single, files = [] } = toRecord(value);
  if (!isTexts(whole) || !isTexts(single) || !isTexts(files)) return undefined;
  const [first, ...rest] = whole;
  return first === undefined ? undefined : { whole: [first, ...rest], single, files };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
