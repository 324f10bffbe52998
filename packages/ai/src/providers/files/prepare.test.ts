import { describe, expect, it } from "vitest";
import { encodeText } from "../../files/file-facts.ts";
import type { FileContent, ImageContent, Message, Model } from "../../messages/messages.ts";
import { createAnswers, createPrompt, createResult } from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { FileError, prepareFiles } from "./prepare.ts";
import { ANY_MODEL, type FileTable } from "./table.ts";

const model = createModel("some-format", "some", "m-1");
const service = { id: "some", name: "Some Service" };
const TABLE: FileTable = {
  image: { types: ["image/png"], sources: ["base64", "url"], maxBytes: 6 },
  pdf: { sources: ["base64", "url", "id"], models: ANY_MODEL, withImages: true },
  audio: { sources: ["base64"], models: /^m/ },
  maxDocuments: 2,
};

const pdf: FileContent = {
  type: "file",
  mediaType: "application/pdf",
  name: "a.pdf",
  source: { type: "base64", data: "AAAA" },
};
const image: ImageContent = { type: "image", data: "AAAA", mimeType: "image/png" };

function user(...content: (FileContent | ImageContent)[]): Message {
  return { role: "user", content, timestamp: 0 };
}

function prepare(
  messages: readonly Message[],
  { table = TABLE, at = model }: { table?: FileTable; at?: Model } = {},
): Message[] {
  return prepareFiles(messages, { model: at, service }, () => table);
}

function explain(file: FileContent, at = model): string {
  try {
    prepare([user(file)], { at });
  } catch (error) {
    expect(error).toBeInstanceOf(FileError);
    if (error instanceof FileError) {
      expect(error).toMatchObject({ code: "unsupported_file", file, service: "some" });
      return error.message;
    }
  }
  return "";
}

describe("a file of the last message", () => {
  it("is sent as it is, and an image block as the same block of the type file", () => {
    expect(prepare([user(pdf, image)])).toEqual([
      user(pdf, {
        type: "file",
        mediaType: "image/png",
        source: { type: "base64", data: "AAAA" },
      }),
    ]);
  });

  it("that is not taken throws, with what it is, where it was to go and what is taken", () => {
    const video = { ...pdf, mediaType: "video/mp4", name: "a.mp4" };
    expect(explain(video)).toBe(
      'The file (a.mp4, video/mp4, 1 KB) cannot be sent to Some Service: this service reads no video. Model "m-1" takes images (as data, by URL), PDF (as data, by URL, by file id), text (as data), audio (as data). Leave the file out, convert it, or use another model.',
    );
  });

  const urlAt = (url: string): FileContent => ({ ...pdf, source: { type: "url", url } });
  it.each<[string, FileContent, string]>([
    ["of another type", { ...pdf, mediaType: "image/bmp" }, "does not read its type"],
    [
      "in another way",
      { ...pdf, mediaType: "audio/wav", source: { type: "url", url: "https://a.test/a.wav" } },
      "takes audio only as data",
    ],
    ["at an address of a kind that is not loaded", urlAt("s3://a/b"), "https: or http:"],
    ["at what is no address", urlAt("a.pdf"), "https: or http:"],
    [
      "that another service has",
      { ...pdf, source: { type: "id", id: "f", service: "other" } },
      'its id is of the service "other"',
    ],
    ["that is empty", { ...pdf, source: { type: "base64", data: "" } }, "it is empty"],
    [
      "that is too large",
      { ...pdf, mediaType: "image/png", source: { type: "base64", data: "A".repeat(12) } },
      "at most 0 KB",
    ],
    [
      "that is stored",
      { ...pdf, source: { type: "stored", sha256: "0".repeat(64), size: 9 } },
      "in a store that the request does not have",
    ],
  ])("%s throws", (_, file, why) => {
    expect(explain(file)).toContain(why);
  });

  it("is judged by what the model reads, where that is known", () => {
    const blind: Model = { ...model, input: ["text"] };
    expect(explain({ ...pdf, mediaType: "image/png" }, blind)).toContain("reads no images");
    expect(explain(pdf, blind)).toContain("this model reads no PDF");
    const sound: FileContent = { ...pdf, mediaType: "audio/wav" };
    const deaf: Model = { ...model, id: "other" };
    expect(explain(sound, deaf)).toContain("this model reads no audio");
    expect(explain(sound, { ...deaf, input: ["text", "audio"] })).toBe("");
    expect(explain(sound)).toBe("");
  });

  it("by an address whose kind alone is known is sent", () => {
    const file: FileContent = {
      type: "file",
      mediaType: "image/*",
      source: { type: "url", url: "https://a.test/1" },
    };
    expect(prepare([user(file)])).toEqual([user(file)]);
  });
});

describe("text", () => {
  const text = (mediaType: string, source: FileContent["source"]): FileContent => ({
    type: "file",
    mediaType,
    name: "a.md",
    source,
  });

  it.each(["text/markdown", "application/json", "application/ld+json", "application/x-yaml"])(
    "of the type %s is written as text where the service has no form for it",
    (type) => {
      const file = text(type, { type: "base64", data: encodeText("Tee für 2 € 🍵") });
      expect(prepare([user(file)])[0]?.content).toEqual([
        { type: "text", text: `[File: a.md, ${type}]\nTee für 2 € 🍵\n[End of file]` },
      ]);
    },
  );

  it("stays a file where the service has a form for it", () => {
    const file = text("text/plain", { type: "base64", data: encodeText("Tea") });
    const table: FileTable = { text: { sources: ["base64"] } };
    expect(prepare([user(file)], { table })).toEqual([user(file)]);
  });

  it("at an address throws where the service loads none", () => {
    expect(explain(text("text/plain", { type: "url", url: "https://a.test" }))).toContain(
      "this service reads no text",
    );
  });
});

describe("a text stands for what is not taken", () => {
  const video: FileContent = { ...pdf, mediaType: "video/mp4", name: "a.mp4" };
  const leftOut = {
    type: "text",
    text: "[File left out (a.mp4, video/mp4, 1 KB): this service reads no video]",
  };
  const answers = createAnswers(model);

  it("in earlier messages, also where only messages of the user follow", () => {
    const answer = answers([{ type: "text", text: "Fine" }]);
    for (const after of [[answer, createPrompt("And?")], [createPrompt("And?")], [answer]]) {
      expect(prepare([user(video), ...after])[0]?.content).toEqual([leftOut]);
    }
  });

  it("in results of tools", () => {
    const call = { type: "toolCall", id: "c", name: "look", arguments: {} } as const;
    const messages = [createPrompt("Look"), answers([call]), createResult("c", [video, pdf])];
    expect(prepare(messages)[2]?.content).toEqual([leftOut, pdf]);
  });

  it("of image blocks everywhere", () => {
    const bmp: ImageContent = { ...image, mimeType: "image/bmp" };
    expect(prepare([user(bmp)])[0]?.content).toEqual([
      {
        type: "text",
        text: "[Image left out (image/bmp, 1 KB): this service does not read its type]",
      },
    ]);
  });

  it("of the oldest documents, where a service takes only so many", () => {
    const answer = answers([{ type: "text", text: "Fine" }]);
    const [first, , last] = prepare([user(pdf, pdf), answer, user(pdf)]);
    expect(first?.content).toEqual([
      {
        type: "text",
        text: "[File left out (a.pdf, application/pdf, 1 KB): this service takes at most 2 documents in a request]",
      },
      pdf,
    ]);
    expect(last?.content).toEqual([pdf]);
    expect(() => prepare([user(pdf, pdf, pdf)])).toThrow("at most 2 documents");
  });
});

describe("a format without a table", () => {
  const own = (messages: readonly Message[]): Message[] =>
    prepareFiles(messages, { model, service }, undefined);

  it("gets images as they are, and files that are images", () => {
    const bmp: ImageContent = { ...image, mimeType: "image/bmp" };
    const file: FileContent = { ...pdf, mediaType: "image/png" };
    expect(own([user(bmp, file)])).toEqual([user(bmp, file)]);
  });

  it("gets no other files", () => {
    expect(() => own([user(pdf)])).toThrow('Model "m-1" takes images (as data), text (as data).');
  });
});

it("what is not about files stays the same, and nothing that was given is changed", () => {
  const messages = [createPrompt("Hi"), user(pdf)];
  const copy = structuredClone(messages);
  expect(prepare(messages)[0]).toBe(messages[0]);
  expect(messages).toEqual(copy);
});
