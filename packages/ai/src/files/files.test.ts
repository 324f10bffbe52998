import { describe, expect, it } from "vitest";
import { describeFile, encodeText, fileKind, fileName, toFileUrl } from "./file-facts.ts";
import { decodeText, toFile } from "./files.ts";
import { guessMediaType } from "./media-types.ts";
import type { FileContent } from "../messages/messages.ts";

const pdf: FileContent = {
  type: "file",
  mediaType: "application/pdf",
  source: { type: "base64", data: "AAAA" },
};

it.each([
  ["image/png", "image"],
  ["image/*", "image"],
  ["IMAGE/PNG", "image"],
  ["application/pdf", "pdf"],
  ["text/x-rust", "text"],
  ["application/json", "text"],
  ["application/vnd.api+json", "text"],
  ["application/toml", "text"],
  ["audio/wav", "audio"],
  ["video/mp4", "video"],
  ["application/msword", "document"],
  ["application/zip", "document"],
  ["", "document"],
])("%s is of the kind %s", (type, kind) => {
  expect(fileKind(type)).toBe(kind);
});

it("an image block is a file with its proof of origin", () => {
  expect(toFile({ type: "image", data: "AA==", mimeType: "image/png", signature: "s" })).toEqual({
    type: "file",
    mediaType: "image/png",
    source: { type: "base64", data: "AA==" },
    signature: "s",
  });
  expect(toFile(pdf)).toBe(pdf);
});

describe("in a few words", () => {
  it.each<[Partial<FileContent>, string]>([
    [{}, "application/pdf, 1 KB"],
    [{ name: "a.pdf" }, "a.pdf, application/pdf, 1 KB"],
    [{ source: { type: "url", url: "https://a.test" } }, "application/pdf"],
    [{ source: { type: "stored", sha256: "0", size: 12_345 } }, "application/pdf, 13 KB"],
  ])("%j", (more, text) => {
    expect(describeFile({ ...pdf, ...more })).toBe(text);
  });
});

it("text goes to base64 and back", () => {
  for (const text of ["", "Tee für 2 €", "🍵\n"]) expect(decodeText(encodeText(text))).toBe(text);
});

it("has an address and a name, where a service wants one", () => {
  expect(toFileUrl(pdf)).toBe("data:application/pdf;base64,AAAA");
  expect(fileName(pdf)).toBe("file.pdf");
  expect(fileName({ ...pdf, name: "a.pdf" })).toBe("a.pdf");
});

it.each([
  ["a.PDF", "application/pdf"],
  ["https://a.test/b/c.png?size=1#x", "image/png"],
  ["a.tar.gz", undefined],
  ["https://a.test", undefined],
  ["https://host.avi", undefined],
  ["https://host.avi/b.mov", "video/quicktime"],
  ["name", undefined],
])("the media type of %s is %s", (name, type) => {
  expect(guessMediaType(name)).toBe(type);
});
