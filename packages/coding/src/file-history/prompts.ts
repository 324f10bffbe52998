import type { UserMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { Choice } from "../conversation/command.ts";
import { promptText as messageText } from "../conversation/prompt-text.ts";
import { titleText } from "../text/session-title.ts";

/** Something that the user said. */
export interface Prompt {
  entry: number;
  /** The entry before it; null: it is the first. */
  parent: number | null;
  message: UserMessage;
  /** Milliseconds since 1970. */
  at: number;
}

/** The newest message of the branch that is talked to; null: there is none. */
export function findNewestMessage(session: Session): number | null {
  const messages = new Set(session.findIds("message"));
  return session.findBranch().findLast((id) => messages.has(id)) ?? null;
}

/**
 * What the user said on the branch that is talked to, the newest first, back to the entry
 * `until`, which is not looked at any more. One after the other is read when it is asked for.
 */
export async function* readPrompts(
  session: Pick<Session, "findIds" | "findBranch" | "read">,
  until: number | null = null,
): AsyncGenerator<Prompt> {
  const messages = new Set(session.findIds("message"));
  for (const id of session.findBranch().reverse()) {
    if (id === until) return;
    if (!messages.has(id)) continue;
    const entry = await session.read(id);
    if (entry.type !== "message" || entry.message.role !== "user") continue;
    yield { entry: id, parent: entry.parentId, message: entry.message, at: entry.timestamp };
  }
}

/** The entry before a prompt, its text to edit, and the prompt itself. */
export interface PromptChoice {
  entry: number | null;
  edit: string;
  before: number;
}

/** The newest prompts of the branch as choices. */
export async function choosablePrompts(
  session: Pick<Session, "findIds" | "findBranch" | "read">,
  most: number,
): Promise<Choice<PromptChoice>[]> {
  const choices: Choice<PromptChoice>[] = [];
  for await (const prompt of readPrompts(session)) {
    const edit = promptText(prompt);
    const value = { entry: prompt.parent, edit, before: prompt.entry };
    choices.push({ value, label: titleText(edit), search: edit });
    if (choices.length >= most) break;
  }
  return choices;
}

/** What the user wrote, without the output of commands that was sent with it. */
export function promptText({ message }: Prompt): string {
  return messageText(message);
}
