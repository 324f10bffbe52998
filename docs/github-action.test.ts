import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { actionWorld, type EventFile } from "../action/testing/action-world.ts";
import { makeComment, REPOSITORY, TOKEN } from "../action/testing/fake-github.ts";
import { readYaml, type Yaml } from "../action/testing/read-yaml.ts";
import { TEST_KEY } from "../packages/cli/src/testing/program.ts";
import { root } from "./snippets.ts";

const page = readFileSync(join(root, "docs/github-action.md"), "utf8");
const action = readMap(readYaml(readFileSync(join(root, "action.yml"), "utf8")));
const workflows = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) =>
  readMap(readYaml(text)),
);
const { open } = actionWorld();

function readMap(value: Yaml | undefined): Readonly<Record<string, Yaml>> {
  if (typeof value !== "object" || Array.isArray(value)) throw new Error("This is no map.");
  return value as Readonly<Record<string, Yaml>>;
}

function readText(value: Yaml | undefined): string {
  if (typeof value !== "string") throw new Error("This is no text.");
  return value;
}

/** The values that expressions have in a run. */
function evaluate(expression: string, context: object): unknown {
  // GitHub's expressions are JavaScript's, but for members of what is missing.
  const code = expression.replaceAll(/(?<=\w)\.(?=\w)/g, "?.").replaceAll("==", "===");
  const contains = (text: string | undefined, part: string): boolean =>
    (text ?? "").toLowerCase().includes(part.toLowerCase());
  const names = ["contains", ...Object.keys(context)];
  // oxlint-disable-next-line no-implied-eval
  return new Function(...names, `return ${code};`)(contains, ...Object.values(context));
}

const PERSON = { login: "ann", type: "User", id: 11 };
const PULL = {
  ...makeComment(3, "ann", "Green tea"),
  number: 7,
  head: { repo: { full_name: REPOSITORY } },
};
/** One of each event that a workflow of the page runs for. */
const EVENTS: Readonly<Record<string, Record<string, unknown>>> = {
  issues: {
    action: "opened",
    issue: { ...makeComment(4, "ann", "@gyre which tea?"), number: 7 },
    sender: PERSON,
  },
  issue_comment: {
    action: "created",
    issue: { number: 7 },
    comment: makeComment(5, "ann", "@gyre which tea?"),
    sender: PERSON,
  },
  pull_request_review_comment: {
    action: "created",
    pull_request: PULL,
    comment: makeComment(6, "ann", "@gyre which tea?"),
    sender: PERSON,
  },
  pull_request: { action: "opened", pull_request: PULL, sender: PERSON },
  schedule: { schedule: "0 5 * * 1" },
};

const cases = workflows.flatMap((workflow) =>
  Object.keys(readMap(workflow["on"])).map((event) => ({
    name: readText(workflow["name"]),
    event,
    workflow,
  })),
);

describe("the workflows of the page", () => {
  it("are three, for five events", () => {
    expect(cases.map(({ name, event }) => `${name}: ${event}`)).toEqual([
      "gyre: issues",
      "gyre: issue_comment",
      "gyre: pull_request_review_comment",
      "review: pull_request",
      "weekly: schedule",
    ]);
  });

  it.each(cases)("$name answers $event", async ({ event, workflow }) => {
    const world = await open([{ say: "Black tea." }]);
    const body = EVENTS[event] ?? {};
    const context = {
      github: { token: TOKEN, repository: REPOSITORY, event: body },
      secrets: { ANTHROPIC_API_KEY: TEST_KEY, OPENAI_API_KEY: TEST_KEY },
    };
    const [job] = Object.values(readMap(workflow["jobs"])).map(readMap);
    expect(job?.["if"] === undefined || evaluate(readText(job["if"]), context)).toBe(true);
    const steps = job?.["steps"];
    if (!Array.isArray(steps)) throw new Error("There are no steps.");
    const [checkout, ...others] = steps.map(readMap);
    // The runner puts the code there, as the world has done, and leaves no token.
    expect(checkout?.["uses"]).toMatch(/^actions\/checkout@v\d$/);
    expect(readMap(checkout?.["with"])["persist-credentials"]).toBe("false");
    const step = others.at(-1);
    expect(step?.["uses"]).toBe("gyre/gyre@v1");
    const defaults = Object.entries(readMap(action["inputs"])).map(([name, input]) => [
      name,
      readMap(input)["default"] ?? "",
    ]);
    const given = { ...Object.fromEntries(defaults), ...readMap(step?.["with"]) };
    const inputs = Object.entries(given).map(([name, value]) => [
      name,
      String(value).replaceAll(/\$\{\{ (.*?) \}\}/g, (_, code: string) =>
        String(evaluate(code, context)),
      ),
    ]);
    const file: EventFile = { name: event, body };
    const { code, log, outputs } = await world.run(file, {
      inputs: {
        ...Object.fromEntries(inputs),
        program: world.program.entry,
        // The service of the test speaks Anthropic's format.
        ...(given["openai-api-key"] && { model: "sonnet", "anthropic-api-key": TEST_KEY }),
        env: "ANTHROPIC_BASE_URL",
      },
    });
    expect(code, log).toBe(0);
    expect(outputs).toMatchObject({ conclusion: "success", text: "Black tea." });
    const answers = [...world.github.comments, ...world.github.reviewComments];
    expect(answers).toHaveLength(event === "schedule" ? 0 : 1);
  });
});

describe("the page", () => {
  const listed = (heading: string): string[] => {
    const section = page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
    const cells = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = ""]) => cell);
    return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
  };

  it.each([
    ["Inputs", "inputs"],
    ["Outputs", "outputs"],
  ])("names all of the %s, and no others", (heading, key) => {
    expect(new Set(listed(heading))).toEqual(new Set(Object.keys(readMap(action[key]))));
  });

  it("names no model that there is not", async () => {
    const { findModel } = await import("@gyre/ai/models");
    expect(findModel("openai/sol").api).toBe("openai-responses");
    expect(page).toContain("model: openai/sol");
  });

  it("has an entry of the action that is there", () => {
    const { main } = readMap(action["runs"]);
    expect(readFileSync(join(root, readText(main)), "utf8")).toContain("runAction");
  });
});
