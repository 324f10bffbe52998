import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { toFile } from "@gyre/ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { filesIn } from "./prompt-files.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-files-"));
  for (const name of ["a.png", "with space.jpg", "c.webp", "a.pdf", "with space.pdf", "call.mp3"]) {
    await writeFile(join(folder, name), name);
  }
  await writeFile(join(folder, "large.png"), Buffer.alloc(5 * 1024 * 1024 + 1));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const typesIn = async (text: string): Promise<string[]> =>
  (await filesIn(text, folder)).files.map((block) =>
    block.type === "text" ? "text" : toFile(block).mediaType,
  );

test("finds pictures whose paths are bare, quoted, escaped, mentioned or addresses", async () => {
  expect(await typesIn("see a.png, and what it says")).toEqual(["image/png"]);
  expect(await typesIn('"with space.jpg" please')).toEqual(["image/jpeg"]);
  expect(await typesIn("with\\ space.jpg")).toEqual(["image/jpeg"]);
  expect(
    await typesIn(`compare @a.png with ${pathToFileURL(join(folder, "c.webp")).href}`),
  ).toEqual(["image/png", "image/webp"]);
});

test("finds other files where they are mentioned", async () => {
  expect(await typesIn("what is in @a.pdf?")).toEqual(["application/pdf"]);
  expect(await typesIn('@"with space.pdf" and @call.mp3.')).toEqual([
    "application/pdf",
    "audio/mpeg",
  ]);
  expect(await typesIn("why does a.pdf not build, and what of @missing.pdf?")).toEqual([]);
});

test("sends the bytes of the file, and the name of one that is no picture", async () => {
  expect((await filesIn("a.png @a.pdf", folder)).files).toEqual([
    { type: "image", data: btoa("a.png"), mimeType: "image/png" },
    {
      type: "file",
      mediaType: "application/pdf",
      name: "a.pdf",
      source: { type: "base64", data: btoa("a.pdf") },
    },
  ]);
});

test("what is no file stays text, and is named once where it is sent", async () => {
  expect(await typesIn("missing.png a.png a.png")).toEqual(["image/png"]);
});

test("one that is too large is left out, and a notice says so", async () => {
  const { files, problems } = await filesIn("large.png", folder);
  expect(files).toEqual([]);
  expect(problems).toEqual([expect.stringContaining("larger than 5 MB")]);
});
