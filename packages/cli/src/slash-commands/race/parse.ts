import { MAX_RIVALS } from "@gyre/coding/internal/race/race";

/** Rivals where no number is given. */
export const DEFAULT_RIVALS = 3;
/** What can be written. */
export const RACE_USAGE = "/race [NUMBER] [--test COMMAND] [--with-ignored] [MODEL... --] PROMPT";
const USAGE = `${RACE_USAGE}: /race 3 --test 'npm test' sonnet opus -- fix the flaky test`;

/** What was typed behind `/race`. */
export interface RaceRequest {
  /** For each rival the name of a model; undefined: that of the conversation. */
  models: readonly (string | undefined)[];
  /** Absent: the last prompt, again. */
  prompt?: string;
  test?: string;
  withIgnored: boolean;
}

/**
 * Reads what follows `/race`: a number, options, names of models and `--`, the prompt. Without `--` all of it is the
 * prompt, unless each word is the name of a model. `findModel` rejects with an error for people.
 */
export async function parseRace(
  rest: string,
  findModel: (name: string) => Promise<unknown>,
): Promise<RaceRequest> {
  const [, digits, afterNumber = ""] = /^(?:(\d+)(?:\s+|$))?([^]*)$/.exec(rest.trim()) ?? [];
  const { text, ...options } = readOptions(afterNumber);
  const { models, prompt } = await splitModels(text, findModel);
  const count = digits === undefined ? Math.max(models.length, 0) : Number(digits);
  if (digits === undefined && prompt === undefined && models.length === 0) throw new Error(USAGE);
  const wanted = count === 0 && digits === undefined ? DEFAULT_RIVALS : count;
  if (wanted < 1 || wanted > MAX_RIVALS) {
    throw new Error(`A race has 1 to ${MAX_RIVALS} rivals, not ${wanted}. ${USAGE}`);
  }
  if (models.length > wanted) {
    throw new Error(`There are ${models.length} models for ${wanted} rivals. ${USAGE}`);
  }
  return {
    ...options,
    ...(prompt !== undefined && { prompt }),
    models: Array.from({ length: wanted }, (_none, index) => models[index % models.length]),
  };
}

const OPTION = /^--(test(?:=|\s+)(?:"([^"]*)"|'([^']*)'|(\S+))|with-ignored)(?:\s+|$)/;

/** The options before the rest. */
function readOptions(given: string): { text: string; test?: string; withIgnored: boolean } {
  let text = given;
  let test: string | undefined;
  let withIgnored = false;
  for (let found = OPTION.exec(text); found; found = OPTION.exec(text)) {
    const [whole, name = "", double, single, word] = found;
    if (name === "with-ignored") withIgnored = true;
    else test = double ?? single ?? word;
    text = text.slice(whole.length);
  }
  const [unknown] = /^--[\w-]+/.exec(text) ?? [];
  if (unknown !== undefined) throw new Error(`There is no option ${unknown}. ${USAGE}`);
  if (test !== undefined && test.trim() === "") throw new Error(`--test needs a command. ${USAGE}`);
  return { text, withIgnored, ...(test !== undefined && { test }) };
}

async function splitModels(
  text: string,
  findModel: (name: string) => Promise<unknown>,
): Promise<{ models: string[]; prompt?: string }> {
  const end = /(?:^|\s)--(?:\s|$)/.exec(text);
  if (end) {
    const models = splitWords(text.slice(0, end.index));
    for (const name of models) await findModel(name);
    const prompt = text.slice(end.index + end[0].length).trim();
    return { models, ...(prompt !== "" && { prompt }) };
  }
  const words = splitWords(text);
  if (words.length === 0) return { models: [] };
  if (words.length > MAX_RIVALS) return { models: [], prompt: text.trim() };
  const found = await Promise.allSettled(words.map((word) => findModel(word)));
  const areModels = found.every(({ status }) => status === "fulfilled");
  return areModels ? { models: words } : { models: [], prompt: text.trim() };
}

function splitWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
