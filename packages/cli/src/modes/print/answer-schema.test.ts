import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { type AnswerSchema, readAnswerSchema } from "./answer-schema.ts";

function read(text: string): AnswerSchema {
  const folder = mkdtempSync(join(tmpdir(), "gyre-schema-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "answer.json");
  writeFileSync(path, text);
  return readAnswerSchema(path);
}

it("leaves a schema of an object as it is", () => {
  const schema = { type: "object", properties: { n: { type: "number" } } };
  const answer = read(JSON.stringify(schema));
  expect(answer.schema).toEqual(schema);
  expect(answer.unwrap({ n: 1 })).toEqual({ n: 1 });
});

it("puts any other kind of answer into an object, with definitions where references find them", () => {
  const answer = read(
    JSON.stringify({
      type: "array",
      items: { $ref: "#/$defs/n" },
      $defs: { n: { type: "number" } },
    }),
  );
  expect(answer.schema).toEqual({
    type: "object",
    properties: { answer: { type: "array", items: { $ref: "#/$defs/n" } } },
    required: ["answer"],
    additionalProperties: false,
    $defs: { n: { type: "number" } },
  });
  expect(answer.unwrap({ answer: [1, 2] })).toEqual([1, 2]);
});

it.each([
  ["{", "cannot be read"],
  ["[]", "it is not an object"],
  ["null", "it is not an object"],
  ['{"type":"bogus"}', 'a type that JSON Schema has not: "bogus"'],
  ['{"properties":{"type":{"type":["string","text"]}}}', 'JSON Schema has not: "text"'],
])("refuses %s", (text, why) => {
  expect(() => read(text)).toThrow(why);
});

it("names a file that is not there", () => {
  expect(() => readAnswerSchema("/nowhere/s.json")).toThrow(
    "--schema /nowhere/s.json cannot be read",
  );
});
