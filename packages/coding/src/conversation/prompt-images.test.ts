import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { imagesIn } from "./prompt-images.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-images-"));
  for (const name of ["a.png", "with space.jpg", "c.webp"]) {
    await writeFile(join(folder, name), name);
  }
  await writeFile(join(folder, "large.png"), Buffer.alloc(5 * 1024 * 1024 + 1));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const typesIn = async (text: string): Promise<string[]> =>
  (await imagesIn(text, folder)).images.map(({ mimeType }) => mimeType);

test("finds paths that are bare, quoted, escaped, mentioned or addresses", async () => {
  expect(await typesIn("see a.png, and what it says")).toEqual(["image/png"]);
  expect(await typesIn('"with space.jpg" please')).toEqual(["image/jpeg"]);
  expect(await typesIn("with\\ space.jpg")).toEqual(["image/jpeg"]);
  expect(
    await typesIn(`compare @a.png with ${pathToFileURL(join(folder, "c.webp")).href}`),
  ).toEqual(["image/png", "image/webp"]);
});

test("sends the bytes of the file", async () => {
  const { images } = await imagesIn("a.png", folder);
  expect(Buffer.from(images[0]?.data ?? "", "base64").toString()).toBe("a.png");
});

test("what is no file stays text, and is named once where it is sent", async () => {
  expect(await typesIn("missing.png a.png a.png")).toEqual(["image/png"]);
});

test("one that is too large is left out, and a notice says so", async () => {
  const { images, problems } = await imagesIn("large.png", folder);
  expect(images).toEqual([]);
  expect(problems).toEqual([expect.stringContaining("larger than 5 MB")]);
});
