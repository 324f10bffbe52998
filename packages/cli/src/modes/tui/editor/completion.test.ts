import { expect, test } from "vitest";
import { type Completion, createCompletions, formatMention } from "./completion.ts";
import type { SlashCommand, SlashContext } from "../../../slash-commands/command-context.ts";

const run = (): void => undefined;
const COMMANDS: readonly SlashCommand[] = [
  { name: "model", about: "Choose a model", hint: "[name]", run, complete: () => MODELS },
  { name: "tree", aliases: ["branches"], about: "The tree", run },
  { name: "handoff", about: "Go on elsewhere", hint: "<goal>", run },
];
const MODELS = [
  { value: "a/sonnet", label: "sonnet", detail: "a" },
  { value: "b/gpt", label: "gpt", search: "open" },
];
const FILES = ["src/", "src/index.ts", "a b.ts", "bad\nname.ts"];

const completions = createCompletions({
  commands: () => COMMANDS,
  context: () => ({}) as SlashContext,
  files: { find: async (query) => FILES.filter((path) => path.includes(query)) },
});

/** What is offered where the bar is, and which part of the text it would replace. */
async function offered(marked: string) {
  const text = marked.replace("|", "");
  const request = completions.for(text, marked.indexOf("|"));
  if (!request) return undefined;
  const choices = await request.load(new AbortController().signal);
  return { ...request, part: text.slice(request.start, request.end), choices };
}

async function texts(marked: string): Promise<string[] | undefined> {
  return (await offered(marked))?.choices.map(({ text }: Completion) => text);
}

test("a slash at the beginning offers commands", async () => {
  expect(await texts("/|")).toEqual(["/model ", "/tree ", "/handoff "]);
  expect(await texts("/tr|")).toEqual(["/tree "]);
  expect(await texts("/mdl|")).toEqual(["/model "]);
  const [model] = (await offered("/mo|"))?.choices ?? [];
  expect(model).toEqual({
    label: "/model [name]",
    detail: "Choose a model",
    text: "/model ",
    next: "submit",
  });
});

test("another name of a command is offered once it is begun", async () => {
  expect(await texts("/b|")).toEqual(["/branches "]);
  expect(await texts("/rnch|")).toEqual([]);
});

test("a command that needs something behind its name is not sent without it", async () => {
  expect((await offered("/hand|"))?.choices[0]?.next).toBe("continue");
  expect((await offered("/mo| sonnet"))?.choices[0]).toMatchObject({
    text: "/model",
    next: "continue",
  });
});

test.each(["a /|", "\n/|", "/usr/bin|", "|/model", "", "no|thing"])(
  "%j offers nothing",
  async (text) => {
    expect(await offered(text.includes("|") ? text : "|")).toBeUndefined();
  },
);

test("behind a command comes what it completes with, found by all that may be typed", async () => {
  expect(await offered("/model |")).toMatchObject({ part: "", isOptional: true });
  expect(await texts("/model |")).toEqual(["a/sonnet", "b/gpt"]);
  expect(await offered("/model son|")).toMatchObject({ part: "son", isOptional: false });
  expect(await texts("/model open|")).toEqual(["b/gpt"]);
  expect(await offered("/tree |")).toBeUndefined();
});

test("an @ at the beginning or behind a space offers files", async () => {
  expect(await texts("@ind|")).toEqual(["@src/index.ts "]);
  expect(await texts("see @ind|")).toEqual(["@src/index.ts "]);
  expect(await texts("see\n@ind|")).toEqual(["@src/index.ts "]);
  expect(await texts("see (@ind|)")).toEqual(["@src/index.ts "]);
  expect(await offered("me@ind|")).toBeUndefined();
});

test("the whole of what stands behind the @ is replaced, and no second space is written", async () => {
  expect(await offered("@in|dex.t and")).toMatchObject({ part: "@index.t" });
  expect(await texts("@in|dex.t and")).toEqual(["@src/index.ts"]);
});

test("a path with spaces is quoted, and goes on within its quotation", async () => {
  expect(await texts("@a|")).toEqual(['@"a b.ts" ']);
  expect(await offered('@"a |b.ts" x')).toMatchObject({ part: '@"a b.ts"' });
  expect(await offered('@"a | x')).toMatchObject({ part: '@"a ' });
  expect(formatMention("a b")).toBe('@"a b"');
});

test("a folder is written open at its end", async () => {
  const [folder] = (await offered("@src|"))?.choices ?? [];
  expect(folder).toEqual({ label: "src/", text: "@src/", next: "continue" });
});

test("a name that cannot be shown as it is, is not offered", async () => {
  expect(await texts("@bad|")).toEqual([]);
});

test("paths for the shell are offered on Tab alone, written as a shell reads them", async () => {
  expect(await offered("!cat ind|")).toMatchObject({ onTab: true, part: "ind" });
  expect(await texts("!cat a|")).toEqual(["a\\ b.ts "]);
  expect(await texts("!ls ./sr|")).toEqual(["src/", "src/index.ts "]);
});
