import type { WireClientApi } from "@gyre/protocol";
import { RemoteAgent } from "@gyre/server/client";
import type { SessionInfo } from "@gyre/server";
import type { Choice } from "@gyre/coding/internal/conversation/command";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";
import { shortId, titleText } from "@gyre/coding/internal/text/session-title";
import { agoText } from "../../text/session-text.ts";

/** The newest sessions of a server that can be chosen. */
const MAX_SESSIONS = 200;

/** The sessions of a server as choices, those first that wait for an answer or run, without the one that is open here and those that were put away. */
export async function listSessionChoices(
  client: WireClientApi,
  now: number,
  open?: string,
): Promise<Choice<string>[]> {
  const { sessions } = await RemoteAgent.listPage(client, { limit: MAX_SESSIONS, order: "live" });
  const others = sessions.filter((each) => each.id !== open && each["archived"] !== true);
  return others.flatMap((session) => toChoice(session, now) ?? []);
}

/** Nothing for a session in which nothing was said and that is not open. */
function toChoice(session: SessionInfo, now: number): Choice<string> | undefined {
  const { id, updatedAt, cwd, isOpen } = session;
  const text = (field: string): string | undefined => {
    const value = session[field];
    return typeof value === "string" ? value : undefined;
  };
  const title = text("title");
  const firstPrompt = text("firstPrompt");
  const name = sessionTitle({
    ...(title !== undefined && { title }),
    ...(firstPrompt !== undefined && { firstPrompt }),
  });
  if (name === undefined && isOpen !== true) return undefined;
  const state = describeState(session);
  return {
    value: id,
    label: name === undefined ? `(nothing was said) ${shortId(id)}` : titleText(name),
    detail: [
      ...(state === undefined ? [] : [state]),
      ...(typeof updatedAt === "number" ? [agoText(updatedAt, now)] : []),
      ...(typeof cwd === "string" ? [cwd] : []),
    ].join(" · "),
    search: `${id} ${firstPrompt ?? ""}`,
  };
}

function describeState({ isOpen, isRunning, state }: SessionInfo): string | undefined {
  if (state === "waiting") return "waits for an answer";
  if (isRunning === true) return "works now";
  return isOpen === true ? "open" : undefined;
}
