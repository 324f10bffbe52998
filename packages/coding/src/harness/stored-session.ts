import { sep } from "node:path";
import { type AgentLoopConfig, type AgentMessage, isLlmMessage } from "@gyre/agent";
import { validateTranscript } from "@gyre/ai";
import { defaultSessionFolder, type SessionContext } from "@gyre/sessions";
import { realPath } from "../settings/project-file.ts";
import { isOwnSession, limitForeign } from "./session/own-settings.ts";
import type { HarnessOptions, Parts } from "./types.ts";

export function isOwnFile(
  { env, session, isJournaled }: HarnessOptions,
  stored: SessionContext | undefined,
): boolean {
  // What writes to the store of a worker decides what that runs anyway.
  if (isJournaled || !session || !stored) return true;
  return isOwnSession(env, session.header, stored.settings);
}

/**
 * A session whose settings this installation has not written. What the model reads first and may do
 * is for the user's settings to say.
 */
export function withoutForeign(
  stored: SessionContext,
  { settings, warn }: HarnessOptions,
): SessionContext {
  warn(
    "The settings of this session were not written by this installation of gyre: its system prompt is not used, and it has no tools but those of your settings.",
  );
  return { ...stored, settings: limitForeign(stored.settings, settings) };
}

/** Damage of a session file may leave the result of a call without the message that made it. */
export function warnOfLostCalls(
  messages: readonly AgentMessage[],
  warn: HarnessOptions["warn"],
): void {
  const sent = messages.filter(isLlmMessage);
  for (const { fault, index } of validateTranscript(sent)) {
    const message = sent[index];
    if (fault !== "result-without-call" || message?.role !== "toolResult") continue;
    warn(
      `The message that called ${message.toolName} is lost: the model does not get the result of the call.`,
    );
  }
}

/**
 * What is known of calls without a result. A question that a person was asked is asked again. So is
 * one that was answered, if this installation has not made the file, or it is not among the user's own
 * sessions: anyone can have written the answer.
 */
export function unfinishedCalls(
  { pending, unfinished }: SessionContext,
  { isOwn, options: { approvals, env, session } }: Parts,
): NonNullable<AgentLoopConfig["unfinished"]> {
  const asked = new Set(approvals === "suspend" ? [] : pending.map(({ toolCall }) => toolCall.id));
  const own = `${realPath(defaultSessionFolder(env))}${sep}`;
  const isKept = isOwn && session?.path !== undefined && realPath(session.path).startsWith(own);
  return (id) => {
    const known = asked.has(id) ? "run" : unfinished(id);
    const isApproval = typeof known === "object" && "type" in known && known.type === "approve";
    return isApproval && !isKept ? "run" : known;
  };
}
