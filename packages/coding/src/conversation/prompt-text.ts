import { describeFile, isImage, type UserMessage } from "@gyre/ai";
import { readOldPrompt, readOldPromptLine } from "./old-prompts.ts";

/** What the user wrote; images have numbers, other files their names. */
export function userText(content: UserMessage["content"]): string {
  if (typeof content === "string") return readOldPrompt(content).prompt;
  let images = 0;
  return content
    .map((block) => {
      if (block.type === "text") return readOldPrompt(block.text).prompt;
      return isImage(block) ? `[image ${++images}]` : `[file ${describeFile(block)}]`;
    })
    .join("\n");
}

/** What the user wrote, without images. */
export function promptText({ content }: Pick<UserMessage, "content">): string {
  if (typeof content === "string") return readOldPrompt(content).prompt;
  return content
    .map((block) => (block.type === "text" ? readOldPrompt(block.text).prompt : ""))
    .join("");
}

/** What a session is called: its title, or its first prompt, on one line. */
export function sessionTitle({
  title,
  firstPrompt,
}: {
  title?: string;
  firstPrompt?: string;
}): string | undefined {
  return title ?? (firstPrompt === undefined ? undefined : readOldPromptLine(firstPrompt));
}

/** "with the output of `npm test`", of a prompt of an early version; else empty. */
export function sentOutputText(content: UserMessage["content"]): string {
  const texts =
    typeof content === "string"
      ? [content]
      : content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const commands = texts.flatMap((text) => readOldPrompt(text).commands);
  return commands.length === 0
    ? ""
    : `with the output of ${commands.map((command) => `\`${command}\``).join(", ")}`;
}
