import { describe, expect, it } from "vitest";
import { requestCheckFor } from "./request-checks.ts";

/** What a check says of a file that is in no form that the service documents. */

type Fields = Record<string, unknown>;

const DATA = "JVBERg==";
const PDF_URL = `data:application/pdf;base64,${DATA}`;

interface Form {
  api: string;
  provider: string;
  model: string;
  body: (part: Fields) => Fields;
  taken: readonly Fields[];
  wrong: readonly (readonly [what: string, part: Fields, says: string])[];
}

const chat = (part: Fields): Fields => ({
  model: "m",
  messages: [{ role: "user", content: [part] }],
});

const FORMS: readonly Form[] = [
  {
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    body: (part) => ({
      model: "claude-sonnet-4-5",
      max_tokens: 100,
      messages: [{ role: "user", content: [part] }],
    }),
    taken: [
      document({ type: "base64", media_type: "application/pdf", data: DATA }),
      document({ type: "text", media_type: "text/plain", data: "Tea" }, { title: "a" }),
      document({ type: "url", url: "https://a.test/a.pdf" }),
      document({ type: "file", file_id: "file_1" }),
      { type: "image", source: { type: "url", url: "https://a.test/a.png" } },
    ],
    wrong: [
      [
        "another type",
        document({ type: "base64", media_type: "text/csv", data: DATA }),
        "none of application/pdf",
      ],
      [
        "no base64",
        document({ type: "base64", media_type: "application/pdf", data: "?" }),
        "base64",
      ],
      ["blank text", document({ type: "text", media_type: "text/plain", data: " " }), "blank"],
      ["an address of another kind", document({ type: "url", url: "http://a" }), "https"],
      ["a blank title", document({ type: "file", file_id: "f" }, { title: "" }), "title"],
      [
        "a key that it does not know",
        document({ type: "file", file_id: "f" }, { name: "a" }),
        "name",
      ],
      ["another source", document({ type: "s3" }), "none of base64"],
    ],
  },
  {
    api: "openai-responses",
    provider: "openai",
    model: "gpt-5.1",
    body: (part) => ({ model: "gpt-5.1", input: [{ role: "user", content: [part] }] }),
    taken: [
      { type: "input_file", file_data: PDF_URL, filename: "a.pdf" },
      { type: "input_file", file_url: "https://a.test/a.pdf" },
      { type: "input_file", file_id: "file-1" },
      { type: "input_image", file_id: "file-1" },
    ],
    wrong: [
      ["contents without a name", { type: "input_file", file_data: PDF_URL }, "filename"],
      ["bare base64", { type: "input_file", file_data: DATA, filename: "a" }, "does not match"],
      ["nothing", { type: "input_file", filename: "a" }, "contents, an address or an id"],
      [
        "two of them",
        { type: "input_file", file_url: "https://a.test", file_id: "file-1" },
        "contents, an address or an id",
      ],
      ["an id of others", { type: "input_file", file_id: "f" }, "does not match"],
    ],
  },
  {
    api: "openai-completions",
    provider: "openai",
    model: "gpt-4.1",
    body: chat,
    taken: [
      { type: "file", file: { file_data: PDF_URL, filename: "a.pdf" } },
      { type: "file", file: { file_id: "file-1" } },
      { type: "input_audio", input_audio: { data: DATA, format: "wav" } },
    ],
    wrong: [
      ["contents without a name", { type: "file", file: { file_data: PDF_URL } }, "filename"],
      ["nothing", { type: "file", file: {} }, "contents or an id"],
      ["sound of another format", audio({ data: DATA, format: "midi" }), "none of wav"],
      ["sound that is no base64", audio({ data: "?", format: "wav" }), "base64"],
      ["video", { type: "video_url", video_url: { url: "https://a.test" } }, "none of text"],
    ],
  },
  {
    api: "openai-completions",
    provider: "openrouter",
    model: "o",
    body: chat,
    taken: [{ type: "video_url", video_url: { url: "https://a.test/a.mp4" } }],
    wrong: [["no address", { type: "video_url", video_url: { url: DATA } }, "does not match"]],
  },
  {
    api: "openai-completions",
    provider: "mistral",
    model: "m",
    body: chat,
    taken: [
      { type: "document_url", document_url: PDF_URL },
      { type: "input_audio", input_audio: DATA },
      { type: "file", file_id: "f-1" },
    ],
    wrong: [
      ["the id of a file as at OpenAI", { type: "file", file: { file_id: "f-1" } }, "string"],
      ["no address", { type: "document_url", document_url: DATA }, "does not match"],
      ["no sound", { type: "input_audio", input_audio: "" }, "empty"],
    ],
  },
  {
    api: "openai-completions",
    provider: "perplexity",
    model: "sonar",
    body: chat,
    taken: [
      { type: "file_url", file_url: { url: DATA } },
      { type: "file_url", file_url: { url: "https://a.test/a.pdf" } },
    ],
    wrong: [
      ["contents as an address", { type: "file_url", file_url: { url: PDF_URL } }, "without"],
    ],
  },
  {
    api: "google-generative-ai",
    provider: "google",
    model: "gemini-3-pro",
    body: (part) => ({ contents: [{ role: "user", parts: [part] }] }),
    taken: [
      { inlineData: { mimeType: "audio/wav", data: DATA } },
      { fileData: { mimeType: "video/mp4", fileUri: "https://a.test/a.mp4" } },
      { fileData: { fileUri: "gs://bucket/a" } },
    ],
    wrong: [
      ["another type", { inlineData: { mimeType: "application/zip", data: DATA } }, "none of"],
      ["an address of another kind", { fileData: { fileUri: "files/1" } }, "does not match"],
      ["a type with a star", file("image/*"), "does not match"],
    ],
  },
  {
    api: "bedrock-converse-stream",
    provider: "amazon-bedrock",
    model: "amazon.nova-pro-v1:0",
    body: (part) => ({ messages: [{ role: "user", content: [part, { text: "?" }] }] }),
    taken: [
      { document: { format: "pdf", name: "a (1)", source: { bytes: DATA } } },
      { video: { format: "mp4", source: { s3Location: { uri: "s3://b/k" } } } },
      { audio: { format: "mp3", source: { bytes: DATA } } },
    ],
    wrong: [
      ["no name", { document: { format: "pdf", source: { bytes: DATA } } }, "must be a string"],
      [
        "a name of other signs",
        { document: { format: "pdf", name: "a.pdf", source: { bytes: DATA } } },
        "does not match",
      ],
      [
        "a name with two spaces in a row",
        { document: { format: "pdf", name: "a  b", source: { bytes: DATA } } },
        "does not match",
      ],
      ["another format", { video: { format: "avi", source: { bytes: DATA } } }, "none of mkv"],
      [
        "an address of another kind",
        { video: { format: "mp4", source: { s3Location: { uri: "https://a" } } } },
        "s3",
      ],
    ],
  },
];

function document(source: Fields, more: Fields = {}): Fields {
  return { type: "document", source, ...more };
}

function audio(input_audio: Fields): Fields {
  return { type: "input_audio", input_audio };
}

function file(mimeType: string): Fields {
  return { fileData: { mimeType, fileUri: "https://a.test/a" } };
}

describe.each(FORMS)("$provider $api", ({ api, provider, model, body, taken, wrong }) => {
  const check = requestCheckFor({ api, provider });

  it.each(taken)("takes %j", (part) => {
    expect(check(body(part), model)).toEqual([]);
  });

  it.each(wrong)("refuses %s", (_, part, says) => {
    expect(check(body(part), model).join("\n")).toContain(says);
  });
});

it("Bedrock wants a text beside a document, other names for others, and not many", () => {
  const check = requestCheckFor({ api: "bedrock-converse-stream", provider: "amazon-bedrock" });
  const named = (name: string): Fields => ({
    document: { format: "pdf", name, source: { bytes: DATA } },
  });
  const of = (...content: Fields[]): Fields => ({ messages: [{ role: "user", content }] });
  const problems = (body: Fields): string => check(body, "amazon.nova-pro-v1:0").join("\n");
  expect(problems(of(named("a")))).toContain("needs a text");
  expect(problems(of(named("a"), named("a"), { text: "?" }))).toContain("a comes twice");
  const many = ["a", "b", "c", "d", "e", "f"].map(named);
  expect(problems(of(...many, { text: "?" }))).toContain("more than 5 documents");
});
