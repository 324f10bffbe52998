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

/**
 * What the user said on the branch that is talked to, the newest first, back to the entry
 * `until`, which is not looked at any more. One after the other is read when it is asked for.
 */
export async function* readPrompts(
  session: Session,
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

/** The newest prompts of the branch as choices: the entry before each, and its text to edit. */
export async function choosablePrompts(
  session: Session,
  most: number,
): Promise<Choice<{ entry: number | null; edit: string }>[]> {
  const choices: Choice<{ entry: number | null; edit: string }>[] = [];
  for await (const prompt of readPrompts(session)) {
    const edit = promptText(prompt);
    choices.push({ value: { entry: prompt.parent, edit }, label: titleText(edit), search: edit });
    if (choices.length >= most) break;
  }
  return choices;
}

/** What the user wrote, without the output of commands that was sent with it. */
export function promptText({ message }: Prompt): string {
  return messageText(message);
}
