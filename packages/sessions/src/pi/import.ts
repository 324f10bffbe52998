import { createReadStream } from "node:fs";
import { isRecord, type Message, type ThinkingLevel } from "@gyre/ai";
import type { EntryBody, SessionSettings } from "../format/entry.ts";
import { type Fields, parseFields } from "../format/body.ts";
import { LF, MAX_LINE_BYTES } from "../format/line.ts";
import { HarnessValues, isHarnessHeader, parseWrites } from "./harness.ts";
import {
  assistantMessage,
  commandText,
  type Skip,
  systemPrompt,
  text,
  toolResult,
  userContent,
  userMessage,
} from "./messages.ts";
import { type NewSession, type Session, SessionError } from "../format/types.ts";

/** The newest version of the coding agent's format that is known here. */
export const PI_VERSION = 3;
/** The same of its harness, with the version of what the lines say. */
const HARNESS_VERSION = 4;
const HARNESS_STORAGE_VERSION = 1;
/** So many appends are under way before one waits for them. */
const MAX_APPENDS_UNDER_WAY = 256;

/** Something of pi's file that has no place in ours. */
export interface SkippedPart {
  /** Counted from 1. */
  line: number;
  type: string;
  /** For people. */
  why: string;
}

/** A session that was taken over, and what of it could not be. */
export interface PiImport {
  /** Open; its end is where pi's was. */
  session: Session;
  skipped: SkippedPart[];
}

/** Whether a first line is that of a session file of pi. */
export function isPiHeader(header: unknown): boolean {
  if (!isRecord(header)) return false;
  const { type, id, timestamp } = header;
  const isAgents = type === "session" && typeof id === "string" && typeof timestamp === "string";
  return isAgents || isHarnessHeader(header);
}

/**
 * Reads a session file of pi, version 1, 2 or 3, or of its harness, version 4, into a session
 * that `target` makes. The tree comes over as it is, with the branches in place and entries
 * under new ids; of the harness's branches it ends where "main" does. What cannot be brought
 * over is reported in `skipped`; what followed it follows what stood before it. Counts and notes
 * for pi's own use (tokens before a compaction, files that a summary saw, a tool's own usage,
 * which tools there were, how far a run has come) are left behind.
 *
 * Throws `SessionError` for a file that is not pi's or is newer, and what appending
 * throws; the session is then closed, and incomplete.
 */
export async function importPiSession(
  path: string,
  target: (header: NewSession) => Promise<Session>,
): Promise<PiImport> {
  let work: Import | undefined;
  try {
    for await (const line of readLines(path)) {
      if (work) await work.line(line.number, line.bytes);
      else if (line.bytes.length > 0) work = await begin(path, line.bytes, target);
    }
    if (!work) throw notOurs(path);
    return await work.end();
  } catch (error) {
    await work?.session.close();
    if (error instanceof Error && "syscall" in error) {
      const message = `${path} cannot be read: ${error.message}`;
      throw new SessionError("unreadable", message, { path, cause: error });
    }
    throw error;
  }
}

async function begin(
  path: string,
  bytes: Buffer,
  target: (header: NewSession) => Promise<Session>,
): Promise<Import> {
  const header = parseFields(bytes);
  if (!header || !isPiHeader(header)) throw notOurs(path);
  const isHarness = isHarnessHeader(header);
  const version = Number((isHarness ? header["v"] : header["version"]) ?? 1) || 1;
  const newest = isHarness ? HARNESS_VERSION : PI_VERSION;
  const storage = Number(header["storageVersion"] ?? HARNESS_STORAGE_VERSION);
  if (version > newest || storage > HARNESS_STORAGE_VERSION) {
    const found = `version ${version}${isHarness ? `, storage ${storage}` : ""}`;
    const what = `${path} is a session of pi in ${found}; up to version ${newest} can be read.`;
    throw new SessionError("newer_version", what, { path });
  }
  const from = { session: text(header["id"]) ?? "", file: path };
  const begun = parseTime(isHarness ? header["createdAt"] : header["timestamp"]);
  const made = await target({
    cwd: text(header["cwd"]) ?? "",
    from,
    ...(begun >= 0 && { createdAt: begun }),
  });
  const work = new Import(made, version, isHarness ? new HarnessValues() : undefined);
  await work.begin(header);
  return work;
}

function notOurs(path: string): SessionError {
  return new SessionError("not_a_session", `${path} is no session file of pi.`, { path });
}

/** Where an entry of pi's went. */
interface Place {
  parent: Place | null;
  /** Ours that stands for it; if it was skipped, that of its parent. */
  entry: Promise<number> | null;
  kind: "message" | "result" | "other";
  /** Of a result: our id of its call. */
  answers?: string;
  /** Calls up to here that have no result yet: pi's id, and ours for each call that has it. */
  open: ReadonlyMap<string, readonly string[]>;
  /** Messages of the role "system" up to here. */
  system: readonly Fields[];
  /** The model that was talked to last, and the one that the settings name. */
  model: SessionSettings["model"];
  set: SessionSettings["model"];
}

const NO_CALLS: Place["open"] = new Map();

/** A part of pi's file, and the place that it follows. */
interface Part {
  fields: Fields;
  /** Of its line. */
  timestamp: number;
  parent: Place | null;
  skip: Skip;
}

class Import {
  readonly session: Session;
  readonly #linear: boolean;
  readonly #values: HarnessValues | undefined;
  readonly #skipped: SkippedPart[] = [];
  readonly #places = new Map<string, Place | null>();
  /** Where lines that were lost would have been, by what is left of their ids; and the last of them. */
  readonly #lostPlaces = new Map<string, Place | null>();
  #lost: { place: Place | null } | undefined;
  /** Ids of version 1, which has none: an entry is identified by its line. */
  #index = 0;
  #last: Place | null = null;
  /** What the next append follows. */
  #at: Promise<number> | null = null;
  #underWay: Promise<number>[] = [];
  readonly #callIds = new Set<string>();

  constructor(session: Session, version: number, values: HarnessValues | undefined) {
    this.session = session;
    this.#linear = version < 2;
    this.#values = values;
  }

  /** Version 1 has what it begins with in the header. */
  async begin(header: Fields): Promise<void> {
    const model = readModel(header);
    const thinkingLevel = LEVELS[text(header["thinkingLevel"]) ?? ""];
    if (!this.#linear || !model) return;
    const place = await this.#set({ model, ...(thinkingLevel && { thinkingLevel }) }, null);
    this.#last = { ...place, model, set: model };
  }

  async line(number: number, bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return;
    const skip = this.#createSkip(number);
    for (const write of parseWrites(bytes)) {
      const fields = isRecord(write) ? write : undefined;
      const kind = fields?.["kind"];
      if (fields && (kind === "value" || kind === "list")) this.#values?.take(fields, number);
      else if (kind !== "usage") await this.#entry(fields, bytes, skip);
    }
  }

  #createSkip(line: number): Skip {
    return (type, why) => this.#skipped.push({ line, type, why });
  }

  async #entry(fields: Fields | undefined, bytes: Buffer, skip: Skip): Promise<void> {
    const id = fields && (this.#linear ? `#${++this.#index}` : text(fields["id"]));
    if (!fields || id === undefined || typeof fields["type"] !== "string") {
      skip("unreadable", "The line is damaged.");
      this.#lose(bytes);
      return;
    }
    const earlier = this.#places.get(id);
    if (earlier !== undefined) {
      skip(fields["type"], `An entry with the id "${id}" came before.`);
      this.#last = earlier;
      return;
    }
    const parent = this.#findParent(fields);
    this.#last = await this.#bring(fields, fields["type"], parent, skip);
    this.#places.set(id, this.#last);
  }

  async end(): Promise<PiImport> {
    for (const entry of this.#values?.entries() ?? []) {
      const skip = this.#createSkip(Number(entry["line"]));
      this.#last = await this.#bring(entry, String(entry["type"]), this.#last, skip);
    }
    const last = this.#last;
    await this.#moveTo(last);
    const { model, set } = last ?? {};
    if (model && (model.provider !== set?.provider || model.id !== set.id)) {
      void this.#append({ type: "settings", settings: { model } });
    }
    await this.#settle();
    return { session: this.session, skipped: this.#skipped };
  }

  #findParent(fields: Fields): Place | null {
    if (this.#linear) return this.#last;
    const parentId = fields["parentId"];
    if (typeof parentId !== "string") return null;
    for (const places of [this.#places, this.#lostPlaces]) {
      const place = places.get(parentId);
      if (place !== undefined) return place;
    }
    return this.#lost ? this.#lost.place : this.#last;
  }

  /** A lost line stands for what it followed; its head may still have its id. */
  #lose(bytes: Buffer): void {
    const head = bytes.toString("utf8", 0, HEAD_BYTES);
    const id = ID.exec(head)?.[1];
    const parentId = PARENT_ID.exec(head)?.[1];
    const known = parentId === undefined ? undefined : this.#places.get(parentId);
    const place = known === undefined ? this.#last : known;
    if (id !== undefined) this.#lostPlaces.set(id, place);
    this.#lost = { place };
  }

  async #bring(
    fields: Fields,
    type: string,
    parent: Place | null,
    skip: Skip,
  ): Promise<Place | null> {
    const timestamp = parseTime(fields["timestamp"]) || 0;
    const part = { fields, timestamp, parent, skip };
    switch (type) {
      case "message": {
        const message = fields["message"];
        if (!isRecord(message)) break;
        return this.#message({ ...part, fields: message });
      }
      case "custom_message":
        return this.#say(userMessage(userContent(fields["content"], skip), timestamp), parent);
      case "branch_summary":
        return this.#summary(part, "Summary of a branch that was left:");
      case "compaction":
        return this.#compaction(part);
      case "model_change": {
        const model = readModel(fields);
        if (!model) break;
        return { ...(await this.#set({ model }, parent)), model, set: model };
      }
      case "thinking_level_change": {
        const thinkingLevel = LEVELS[text(fields["thinkingLevel"]) ?? ""];
        if (thinkingLevel === undefined) break;
        return this.#set({ thinkingLevel }, parent);
      }
      case "session_info": {
        const title = text(fields["name"])?.trim();
        if (!title) break;
        return this.#add({ type: "title", title }, parent);
      }
      case "label":
        return this.#label(fields, parent, skip);
      case "custom": {
        const kind = text(fields["customType"]) ?? "custom";
        return this.#add({ type: "custom", kind, data: fields["data"] ?? null }, parent);
      }
      case "leaf": {
        const targetId = fields["targetId"];
        if (targetId === null) return null;
        const target = typeof targetId === "string" ? this.#places.get(targetId) : undefined;
        if (target !== undefined) return target;
        break;
      }
      default:
        skip(type, "Entries of this type have no place in a session.");
        return standIn(parent);
    }
    skip(type, "It does not say what an entry of this type has to say.");
    return standIn(parent);
  }

  async #message(part: Part): Promise<Place | null> {
    const { fields, parent, skip } = part;
    const stated = fields["timestamp"];
    const timestamp = typeof stated === "number" ? stated : part.timestamp;
    if (Array.isArray(fields["attachments"]) && fields["attachments"].length > 0) {
      skip("attachments", "Only what is in the message itself is brought over.");
    }
    switch (fields["role"]) {
      case "user":
      case "custom":
      // The name of custom messages in version 2.
      case "hookMessage":
        return this.#say(userMessage(userContent(fields["content"], skip), timestamp), parent);
      case "system": {
        const system = [...(parent?.system ?? []), fields];
        return { ...(await this.#set({ systemPrompt: systemPrompt(system) }, parent)), system };
      }
      case "assistant": {
        const open = new Map(parent?.open);
        const own = new Set<string>();
        const message = assistantMessage(
          fields,
          timestamp,
          (piId, callId) => {
            const id = this.#freshCallId(callId);
            open.set(piId, own.has(piId) ? [...(open.get(piId) ?? []), id] : [id]);
            own.add(piId);
            return id;
          },
          skip,
        );
        const model = { provider: message.provider, id: message.model };
        return { ...(await this.#say(message, parent)), open, model };
      }
      case "toolResult": {
        const piId = text(fields["toolCallId"]) ?? "";
        const [id, ...others] = parent?.open.get(piId) ?? [];
        if (id === undefined) {
          skip("toolResult", `No call before it with the id "${piId}" waits for a result.`);
          return standIn(parent);
        }
        const open = new Map(parent?.open);
        if (others.length > 0) open.set(piId, others);
        else open.delete(piId);
        const place = await this.#say(toolResult(fields, id, timestamp, skip), parent);
        return { ...place, open, answers: id };
      }
      case "bashExecution":
        if (fields["excludeFromContext"] === true) {
          return this.#add({ type: "custom", kind: "pi:bashExecution", data: fields }, parent);
        }
        return this.#say(userMessage(commandText(fields), timestamp), parent);
      case "branchSummary":
        return this.#summary({ ...part, timestamp }, "Summary of a branch that was left:");
      case "compactionSummary":
        return this.#summary({ ...part, timestamp }, "Summary of earlier turns:");
      default: {
        const type = `message ${text(fields["role"]) ?? ""}`.trim();
        skip(type, "Messages of this role have no place in a session.");
        return standIn(parent);
      }
    }
  }

  async #summary({ fields, timestamp, parent, skip }: Part, title: string): Promise<Place | null> {
    const summary = text(fields["summary"]);
    if (!summary) {
      skip(text(fields["type"]) ?? "summary", "There is no summary in it.");
      return standIn(parent);
    }
    return this.#say(userMessage(`${title}\n\n${summary}`, timestamp), parent);
  }

  /**
   * pi sends the summary in place of all up to an entry that it kept. Newer files have
   * copies of the messages that were kept in place of that entry's id.
   */
  async #compaction(part: Part): Promise<Place | null> {
    const { fields, timestamp, parent, skip } = part;
    const path = pathTo(parent);
    const first = path.find(({ kind }) => kind !== "other");
    const kept = this.#keptBy(fields);
    const from = kept === null ? 0 : path.findIndex((place) => place === kept);
    const until = from < 0 ? undefined : firstCut(path.slice(from));
    const summary = text(fields["summary"]) ?? "";
    let place: Place | null;
    if (first?.entry && first !== until) {
      const message = userMessage(`Summary of earlier turns:\n\n${summary}`, timestamp);
      const ids = { first: await first.entry, until: until?.entry ? await until.entry : null };
      place = await this.#add({ type: "compaction", ...ids, message }, parent);
      // A result that comes later has no call any more if that is left out.
      place = { ...place, open: until ? without(place.open, until.parent) : NO_CALLS };
    } else {
      place = await this.#summary(part, "Summary of earlier turns:");
    }
    const tail = until ? [] : fields["retainedTail"];
    for (const message of Array.isArray(tail) ? (tail as unknown[]) : []) {
      if (!isRecord(message)) {
        skip("message", "It is no message.");
        continue;
      }
      // It holds as it is: no compaction takes the prompt away here.
      if (message["role"] === "system") continue;
      place = await this.#message({ ...part, fields: message, parent: place });
    }
    return place;
  }

  #keptBy(fields: Fields): Place | null | undefined {
    const index = fields["firstKeptEntryIndex"];
    // The index counts the header.
    const id =
      this.#linear && typeof index === "number" ? `#${index}` : text(fields["firstKeptEntryId"]);
    return id === undefined ? undefined : this.#places.get(id);
  }

  async #label(fields: Fields, parent: Place | null, skip: Skip): Promise<Place | null> {
    const target = this.#places.get(text(fields["targetId"]) ?? "");
    if (!target?.entry) {
      skip("label", "The entry that it is for is not there.");
      return standIn(parent);
    }
    const label = text(fields["label"]) || null;
    return this.#add({ type: "label", entry: await target.entry, label }, parent);
  }

  #set(settings: SessionSettings, parent: Place | null): Promise<Place> {
    return this.#add({ type: "settings", settings }, parent);
  }

  #say(message: Message, parent: Place | null): Promise<Place> {
    const kind = message.role === "toolResult" ? "result" : "message";
    return this.#add({ type: "message", message }, parent, kind);
  }

  async #add(body: EntryBody, parent: Place | null, kind: Place["kind"] = "other"): Promise<Place> {
    await this.#moveTo(parent);
    return createPlace(parent, kind, this.#append(body));
  }

  async #moveTo(place: Place | null): Promise<void> {
    if (this.#underWay.length >= MAX_APPENDS_UNDER_WAY) await this.#settle();
    const entry = place?.entry ?? null;
    if (entry === this.#at) return;
    await this.#settle();
    await this.session.branch(await entry);
    this.#at = entry;
  }

  #append(body: EntryBody): Promise<number> {
    const entry = this.session.append(body).then(({ id }) => id);
    // Awaited in `#settle`; until then its rejection is not unhandled.
    entry.catch(() => {});
    this.#underWay.push(entry);
    this.#at = entry;
    return entry;
  }

  async #settle(): Promise<void> {
    const underWay = this.#underWay;
    this.#underWay = [];
    await Promise.all(underWay);
  }

  /** Some services number their calls from 1 in each answer; here an id is used once. */
  #freshCallId(id: string): string {
    let fresh = id;
    for (let n = 2; this.#callIds.has(fresh); n++) fresh = `${id}_${n}`;
    this.#callIds.add(fresh);
    return fresh;
  }
}

const LEVELS: Readonly<Record<string, ThinkingLevel>> = {
  off: "off",
  minimal: "minimal",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
};

const HEAD_BYTES = 512;
const ID = /"id":"([^"\\]+)"/;
const PARENT_ID = /"parentId":"([^"\\]+)"/;

function readModel(fields: Fields): SessionSettings["model"] {
  const provider = text(fields["provider"]);
  const id = text(fields["modelId"]);
  return provider === undefined || id === undefined ? undefined : { provider, id };
}

/** Milliseconds since 1970: the harness has the number, the coding agent a date in words. */
function parseTime(value: unknown): number {
  return typeof value === "number" ? value : Date.parse(text(value) ?? "");
}

/** The place of something that was skipped: what follows it follows its parent. */
function standIn(parent: Place | null): Place | null {
  return parent && createPlace(parent, "other", parent.entry);
}

function createPlace(parent: Place | null, kind: Place["kind"], entry: Place["entry"]): Place {
  const { model, open = NO_CALLS, set, system = [] } = parent ?? {};
  return { parent, entry, kind, open, model, set, system };
}

/** The first message that can begin what is sent: no result behind it has its call before it. */
function firstCut(path: readonly Place[]): Place | undefined {
  const answered = new Set(path.map(({ answers }) => answers));
  return path.find(
    ({ kind, parent }) =>
      kind === "message" && !listIds(parent?.open).some((id) => answered.has(id)),
  );
}

function without(open: Place["open"], left: Place | null): Place["open"] {
  const gone = new Set(listIds(left?.open));
  return new Map([...open].filter(([, ids]) => !ids.some((id) => gone.has(id))));
}

function listIds(open: Place["open"] = NO_CALLS): string[] {
  return [...open.values()].flat();
}

function pathTo(place: Place | null): Place[] {
  const path: Place[] = [];
  for (let at = place; at; at = at.parent) path.push(at);
  return path.reverse();
}

/** The lines of a file, without their ends. One that is too long comes cut, and so does not parse. */
async function* readLines(path: string): AsyncGenerator<{ number: number; bytes: Buffer }> {
  let number = 0;
  let pieces: Buffer[] = [];
  let length = 0;
  const keep = (piece: Buffer): void => {
    if (length <= MAX_LINE_BYTES) pieces.push(piece);
    length += piece.length;
  };
  const take = (): { number: number; bytes: Buffer } => {
    const [first] = pieces;
    const bytes = first && pieces.length === 1 ? first : Buffer.concat(pieces);
    pieces = [];
    length = 0;
    return { number: ++number, bytes };
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      keep(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    keep(chunk.subarray(start));
  }
  if (length > 0) yield take();
}
