import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { checkJson, errorMessage, type JsonSchema } from "@gyre/ai";
import type { VectorResult } from "./plain-sse.ts";

/** The test suite of JSON Schema itself, where the folder has it. */
const SUITE = "json-schema";
/** Where the suite says that its documents are. */
const ADDRESS = "http://localhost:1234/";
/** Right answers of typebox's own checker: fewer than these count as a failure. */
const LEAST_RIGHT: Readonly<Record<string, number>> = { "draft2020-12": 1256, draft7: 910 };

interface Group {
  readonly description: string;
  readonly schema: JsonSchema | boolean;
  readonly tests: readonly { description: string; data: unknown; valid: boolean }[];
}

/**
 * A result for each file of required cases, and one for each draft, with the count of right answers. A case
 * that refers to a document that is not there has no answer, which is neither right nor wrong.
 */
export function playSchemas(folder: string): { results: VectorResult[]; summary: string[] } {
  const results: VectorResult[] = [];
  const summary: string[] = [];
  for (const [draft, least] of Object.entries(LEAST_RIGHT)) {
    const cases = join(folder, SUITE, "tests", draft);
    if (!existsSync(cases)) continue;
    const documents = loadDocuments(join(folder, SUITE, "remotes"), draft);
    const count = { right: 0, all: 0, unanswered: 0 };
    for (const file of readdirSync(cases).filter((name) => name.endsWith(".json"))) {
      const problems: string[] = [];
      for (const { description, schema, tests } of readJson<Group[]>(join(cases, file))) {
        for (const test of tests) {
          const answer = ask(schema, test.data, documents);
          count.all++;
          if (answer === undefined) count.unanswered++;
          else if (answer === test.valid) count.right++;
          else problems.push(`${description}: ${test.description}: answered ${answer}`);
        }
      }
      results.push({ name: `${SUITE}/${draft}/${file}`, problems });
    }
    const { right, all, unanswered } = count;
    const figure = `${SUITE}/${draft}: ${right} of ${all} right, ${unanswered} without an answer`;
    summary.push(figure);
    results.push({
      name: `${SUITE}/${draft}`,
      problems: right >= least ? [] : [`${figure}; at least ${least} have to be right`],
    });
  }
  return { results, summary };
}

function ask(
  schema: JsonSchema | boolean,
  value: unknown,
  documents: Readonly<Record<string, JsonSchema>>,
): boolean | string | undefined {
  try {
    const { problems, unchecked } = checkJson(schema, value, documents);
    return unchecked === undefined ? problems.length === 0 : undefined;
  } catch (error) {
    return `with an error: ${errorMessage(error)}`;
  }
}

/** The documents that cases refer to, by their address; those of other drafts are left out. */
function loadDocuments(folder: string, draft: string): Record<string, JsonSchema> {
  const documents: Record<string, JsonSchema> = {};
  const visit = (path: string): void => {
    for (const name of readdirSync(join(folder, path))) {
      const inner = path + name;
      if (!statSync(join(folder, inner)).isDirectory()) {
        documents[ADDRESS + inner] = readJson<JsonSchema>(join(folder, inner));
      } else if (path !== "" || inner === draft || !/^(draft|v)\d/.test(inner)) visit(`${inner}/`);
    }
  };
  visit("");
  return documents;
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf8")) as T;
}
