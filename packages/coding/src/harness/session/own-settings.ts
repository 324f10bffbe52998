import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { errnoOf, isRecord } from "@gyre/ai";
import {
  defaultSessionFolder,
  type Session,
  type SessionHeader,
  type SessionSettings,
} from "@gyre/sessions";
import type { Environment } from "../../core/environment.ts";
import { isToolIn } from "../../core/tool-lists.ts";
import { isMcpTool } from "../../mcp/tools.ts";
import { readSmallFile } from "../../settings/file.ts";
import type { Settings } from "../../settings/settings.ts";

const KEY_BYTES = 32;
const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;

/** The settings of a session that say what the model reads first, and what it may do. */
type Rights = Pick<SessionSettings, "systemPrompt" | "tools" | "mode">;

/**
 * A mark by which this installation knows settings again that it has written to a session.
 * Undefined where its key cannot be kept: the settings are then as those of another installation.
 */
export function markSettings(
  env: Environment,
  { header }: Session,
  rights: Rights,
): string | undefined {
  const key = readKey(env) ?? makeKey(env);
  return key && computeMark(key, header.id, rights);
}

/**
 * Whether this installation has written the settings of a session, to its file or to the one that
 * it is a copy of. Anyone can have written those of a file that was copied, sent or edited.
 */
export function isOwnSession(
  env: Environment,
  header: SessionHeader,
  settings: SessionSettings,
): boolean {
  const { mark, systemPrompt, tools, mode } = settings;
  if ([systemPrompt, tools, mode].every((value) => value === undefined)) return true;
  const key = typeof mark === "string" ? readKey(env) : undefined;
  if (!key || mark === undefined) return false;
  const ids = [header.id, ...(header.from?.session === undefined ? [] : [header.from.session])];
  return ids.some((id) => isSame(computeMark(key, id, settings), mark));
}

/** What is taken of the settings of another installation: nothing that the user's own do not allow. */
export function limitForeign(had: SessionSettings, settings: Settings): SessionSettings {
  const { model, thinkingLevel, tools }: { [Name in keyof SessionSettings]: unknown } = had;
  const isModel = isRecord(model) && [model["provider"], model["id"]].every(isText);
  return {
    ...(isModel && had.model && { model: had.model }),
    ...(isText(thinkingLevel) && had.thinkingLevel && { thinkingLevel: had.thinkingLevel }),
    ...(Array.isArray(tools) && {
      tools: tools.filter(isText).filter((name) => isToolIn(settings.tools, name, isMcpTool(name))),
    }),
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function computeMark(key: Buffer, id: string, { systemPrompt, tools, mode }: Rights): string {
  const text = JSON.stringify([id, systemPrompt, tools, mode]);
  return createHmac("sha256", key).update(text).digest("base64url");
}

function isSame(mark: string, other: string): boolean {
  const [a, b] = [Buffer.from(mark), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Beside the sessions, where no tool reads. */
function keyPath(env: Environment): string {
  return join(dirname(defaultSessionFolder(env)), "session-key");
}

function readKey(env: Environment): Buffer | undefined {
  const read = readSmallFile(keyPath(env));
  return read && "content" in read && read.content.length === KEY_BYTES ? read.content : undefined;
}

/** Another process may make one at the same time: the first counts. */
function makeKey(env: Environment): Buffer | undefined {
  const path = keyPath(env);
  const made = `${path}.${randomUUID()}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: OWNER_ONLY_FOLDER });
    writeFileSync(made, randomBytes(KEY_BYTES), { mode: OWNER_ONLY, flag: "wx" });
    linkSync(made, path);
  } catch (error) {
    // A home folder that cannot be written to has no key, and needs none.
    if (errnoOf(error) === undefined) throw error;
  } finally {
    rmSync(made, { force: true });
  }
  return readKey(env);
}
