import type { McpField, McpQuestion } from "@gyre/mcp";
import { describe, expect, it } from "vitest";
import { answerServer, type QuestionUi } from "./server-question.ts";

/** A user who answers with labels and lines, in this order. Undefined: leaves the question. */
function user(
  ...answers: (string | undefined)[]
): QuestionUi & { seen: string[]; opened: string[] } {
  const seen: string[] = [];
  const opened: string[] = [];
  return {
    seen,
    opened,
    choose: ({ title, about = [], choices }) => {
      seen.push([title, ...about, ...choices.map(({ label }) => `- ${label}`)].join("\n"));
      const label = answers.shift();
      if (label === undefined) return Promise.resolve(undefined);
      const chosen = choices.find((choice) => choice.label === label);
      if (!chosen) throw new Error(`There is no choice ${label} in ${seen.at(-1)}`);
      return Promise.resolve(chosen.value);
    },
    line: ({ title, about = [], initial = "" }) => {
      seen.push([title, ...about, `> ${initial}`].join("\n"));
      return Promise.resolve(answers.shift());
    },
    openPage: (url) => void opened.push(url),
  };
}

const form = (...fields: McpField[]): McpQuestion => ({
  kind: "form",
  server: "tea",
  message: "Which tea?",
  fields,
});
const field = (more: Partial<McpField> & Pick<McpField, "name" | "type">): McpField => ({
  label: more.name,
  isRequired: true,
  ...more,
});
const kinds = [
  { value: "g", label: "Green" },
  { value: "b", label: "Black" },
];

describe("a form of an MCP server", () => {
  it("is filled in field by field, shown, and sent", async () => {
    const ui = user("Answer", "Black", "3", "Yes", "a, b", "Send");
    const answer = await answerServer(
      form(
        field({ name: "kind", type: "choice", options: kinds }),
        field({ name: "cups", type: "integer" }),
        field({ name: "hot", type: "boolean" }),
        field({
          name: "with",
          type: "choices",
          options: ["a", "b"].map((value) => ({ value, label: value })),
        }),
      ),
      ui,
    );
    expect(answer).toEqual({
      action: "accept",
      content: { kind: "b", cups: 3, hot: true, with: ["a", "b"] },
    });
    expect(ui.seen[0]).toContain('The MCP server "tea" asks\nWhich tea?');
    expect(ui.seen.at(-1)).toContain("kind: b\ncups: 3\nhot: yes\nwith: a, b");
  });

  it("asks again for what does not do, with what is wrong and what was typed", async () => {
    const ui = user("Answer", "many", "4", "Send");
    expect(await answerServer(form(field({ name: "cups", type: "integer" })), ui)).toEqual({
      action: "accept",
      content: { cups: 4 },
    });
    expect(ui.seen[2]).toContain("cups has to be a number.\n> many");
  });

  it("leaves out what is optional and stays empty", async () => {
    const ui = user("Answer", "", "Leave it empty", "Send");
    const answer = await answerServer(
      form(
        field({ name: "note", type: "text", isRequired: false }),
        field({ name: "kind", type: "choice", options: kinds, isRequired: false }),
      ),
      ui,
    );
    expect(answer).toEqual({ action: "accept", content: {} });
  });

  it("begins with its defaults, and can be changed before it is sent", async () => {
    const ui = user("Answer", "2", "Change it", "5", "Send");
    const cups = field({ name: "cups", type: "integer", default: 2 });
    expect(await answerServer(form(cups), ui)).toEqual({ action: "accept", content: { cups: 5 } });
    expect(ui.seen[1]).toContain("> 2");
  });

  it.each([
    ["declined at first", ["Decline"], "decline"],
    ["declined at last", ["Answer", "1", "Decline"], "decline"],
    ["left at first", [undefined], "cancel"],
    ["left in a field", ["Answer", undefined], "cancel"],
    ["left at last", ["Answer", "1", undefined], "cancel"],
  ])("that is %s sends nothing", async (_what, answers, action) => {
    const ui = user(...answers);
    expect(await answerServer(form(field({ name: "cups", type: "integer" })), ui)).toEqual({
      action,
    });
  });

  it("without fields is a yes or a no", async () => {
    expect(await answerServer(form(), user("Accept"))).toEqual({ action: "accept", content: {} });
  });
});

describe("a page of an MCP server", () => {
  const page: McpQuestion = {
    kind: "url",
    server: "tea",
    message: "Pay here.",
    url: "https://pay.example/1",
  };

  it("is shown with its whole address, and opened only where the user says so", async () => {
    const ui = user("I open it myself");
    expect(await answerServer(page, ui)).toEqual({ action: "accept" });
    expect(ui.seen[0]).toContain("https://pay.example/1");
    expect(ui.opened).toEqual([]);
    const willing = user("Open it in the browser");
    expect(await answerServer(page, willing)).toEqual({ action: "accept" });
    expect(willing.opened).toEqual(["https://pay.example/1"]);
    expect(await answerServer(page, user("Decline"))).toEqual({ action: "decline" });
    expect(await answerServer(page, user(undefined))).toEqual({ action: "cancel" });
  });
});
