import type { UserMessage } from "@gyre/ai";
import { promptOf } from "./ran-command.ts";

/** What the user wrote, without the output of commands that was sent with it; images have numbers. */
export function userText(content: UserMessage["content"]): string {
  if (typeof content === "string") return promptOf(content).prompt;
  let images = 0;
  return content
    .map((block) => (block.type === "text" ? promptOf(block.text).prompt : `[image ${++images}]`))
    .join("\n");
}

/** The commands whose output the model got with the message. */
export function commandsSentWith(content: UserMessage["content"]): readonly string[] {
  if (typeof content === "string") return promptOf(content).commands;
  return content.flatMap((block) => (block.type === "text" ? promptOf(block.text).commands : []));
}
