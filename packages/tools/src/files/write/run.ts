import type { AgentToolResult } from "@gyre/agent";
import { humanSize } from "@gyre/ai/text";
import type { ToolEnv } from "../../contract/env.ts";
import { decodeText, textEncoding } from "../../text/encoding.ts";
import { counted, textResult } from "../../text/text.ts";
import { listedName } from "../../text/truncate.ts";
import type { FileIdentity } from "../../workspace/workspace.ts";
import { READ_MAX_SEEN_BYTES } from "../read/tool.ts";
import { WRITE_MAX_OLD_TEXT_CHARS, type WriteDetails } from "./tool.ts";

/** Writes the file, if the agent may replace what is there. */
export async function runWrite(
  env: ToolEnv,
  path: string,
  content: string,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  signal.throwIfAborted();
  const old = await checkReplaceable(env, path);
  const info = await env.workspace.write(path, content, { expected: old?.identity ?? null });
  env.seen.note(info.path, content);
  const created = old === undefined;
  const details: WriteDetails = {
    path: info.path,
    created,
    bytes: info.size,
    ...(old && old.text.length <= WRITE_MAX_OLD_TEXT_CHARS && { oldText: old.text }),
    newText: content,
  };
  const was = old ? ` (was ${counted(lineCount(old.text), "line")})` : "";
  return textResult(
    `${created ? "Made" : "Replaced"} ${listedName(info.path)}: ` +
      `${counted(lineCount(content), "line")}${was}, ${counted(info.size, "byte")}.`,
    details,
  );
}

interface Replaced {
  text: string;
  identity: FileIdentity;
}

/** What is at `path` and may be replaced; absent where nothing is. Throws where it may not. */
export async function checkReplaceable(env: ToolEnv, path: string): Promise<Replaced | undefined> {
  const { exists } = await env.workspace.resolve(path);
  if (!exists) return undefined;
  const info = await env.workspace.stat(path);
  const name = listedName(info.path);
  if (info.size > READ_MAX_SEEN_BYTES) {
    throw new Error(
      `${name} is there already and too large (${humanSize(info.size)}) to be replaced by write. ` +
        "Write to another path, or change it with a program.",
    );
  }
  const { bytes, info: identity } = await env.workspace.read(path, READ_MAX_SEEN_BYTES);
  if (bytes.length === 0) return { text: "", identity };
  const text = decodeText(bytes);
  if (text !== undefined && textEncoding(bytes) !== "utf-8") {
    throw new Error(
      `${name} is there already in UTF-16, and write would make it UTF-8. Change it with a program, or remove it first.`,
    );
  }
  if (text === undefined) {
    throw new Error(
      `${name} is there already and is not text. Remove it first if it is to be replaced.`,
    );
  }
  const seen = env.seen.get(identity.path);
  if (!seen) {
    throw new Error(
      `${name} is there already and was not read. Read it first, so that nothing is lost; ` +
        "then write, or use edit for a part of it.",
    );
  }
  if (seen.text !== text) {
    throw new Error(`${name} has changed since it was read. Read it again, then write.`);
  }
  return { text, identity };
}

/** As people count: a line end at the end of the text begins no further line. */
function lineCount(text: string): number {
  if (text === "") return 0;
  let count = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
