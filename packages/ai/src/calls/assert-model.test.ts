import { expect, it } from "vitest";
import { checkBatch } from "../batch/batch.ts";
import { embedMany } from "../embeddings/embed.ts";
import { generateImage } from "../images/generate-image.ts";

// Programs in JavaScript: the compiler would find these.
it.each([
  ["openai/text-embedding-3-small", 'model("openai", "text-embedding-3-small")'],
  ["small", 'is "small": give a model'],
  [undefined, "is undefined: give a model"],
])("a model that is %j is an error that says what to write", async (given, expected) => {
  const model = given as never;
  await expect(embedMany({}, model, ["Hi"])).rejects.toThrow(expected);
  await expect(generateImage({}, model, "A tern")).rejects.toThrow(expected);
  await expect(checkBatch({}, model, "batch_1")).rejects.toThrow(expected);
});
