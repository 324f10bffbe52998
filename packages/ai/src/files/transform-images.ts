import { leaveOut } from "./file-facts.ts";
import type {
  AssistantContent,
  FileContent,
  ImageContent,
  Message,
  Model,
  UserContent,
} from "../messages/messages.ts";
import {
  isOwn,
  type MessageConstraints,
  transformPrepared,
} from "../messages/transform-messages.ts";

/** What a format that writes `image` blocks accepts of a transcript. */
export interface ImageConstraints extends MessageConstraints {
  /** Default: PNG, JPEG, GIF and WebP. */
  imageTypes?: readonly string[];
  /** Of one image, decoded. Default 5 MB. */
  maxImageBytes?: number;
}

const IMAGE_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MAX_IMAGE_BYTES = 5_000_000;

/**
 * Transforms a transcript for one model, whichever models wrote it. What only the author can
 * read (signatures, a service's own blocks) is sent to its author alone and becomes text for
 * all others; ids fit the target and stay one-to-one; nothing is empty, and every text is
 * well-formed. Images that the model does not read, and files that are no images, become text. The
 * result depends on the arguments alone, and its beginning does not change when messages are added at
 * the end.
 */
export function transformMessages(
  messages: readonly Message[],
  model: Model,
  rules: ImageConstraints,
): Message[] {
  const seen = messages.map((message): Message => {
    if (typeof message.content === "string") return message;
    if (message.role === "assistant") {
      const own = isOwn(message, model);
      return { ...message, content: message.content.map((block) => transformMade(block, own)) };
    }
    const content = message.content.map((block) => transformShown(block, model, rules));
    return { ...message, content };
  });
  return transformPrepared(seen, model, rules);
}

/** What a model made is shown to that model alone. */
function transformMade(block: AssistantContent, own: boolean): AssistantContent {
  if (block.type !== "image" && block.type !== "file") return block;
  const image = toImage(block);
  if (own && image) return image;
  const what = image ? "Image" : "File";
  const type = block.type === "image" ? block.mimeType : block.mediaType;
  return { type: "text", text: `[${what} made by the model: ${type}]` };
}

/** An image that is written as a file, where its contents are here. */
function toImage(block: ImageContent | FileContent): ImageContent | undefined {
  if (block.type === "image") return block;
  const { mediaType: mimeType, source, signature } = block;
  if (source.type !== "base64" || !mimeType.startsWith("image/")) return undefined;
  const proof = signature === undefined ? {} : { signature };
  return { type: "image", data: source.data, mimeType, ...proof };
}

function transformShown(block: UserContent, model: Model, rules: ImageConstraints): UserContent {
  if (block.type !== "image" && block.type !== "file") return block;
  const { imageTypes = IMAGE_TYPES, maxImageBytes = MAX_IMAGE_BYTES } = rules;
  const image = toImage(block);
  if (!image) return leaveOut(block, "this service takes images alone, with their contents");
  if (model.input && !model.input.includes("image")) {
    return leaveOut(block, "this model reads no images");
  }
  if (image.data === "") return leaveOut(block, "it is empty");
  if (!imageTypes.includes(image.mimeType)) {
    return leaveOut(block, "this service does not read its type");
  }
  if (Math.floor((image.data.length * 3) / 4) > maxImageBytes) {
    return leaveOut(block, `this service takes at most ${Math.floor(maxImageBytes / 1000)} KB`);
  }
  return image;
}
