import { expect, it } from "vitest";
import { keyProblem } from "./key-check.ts";

it.each(["sk-abc", "A", "a/b+c=", "with~every!thing#%&|"])("%s may be a key", (key) => {
  expect(keyProblem(key)).toBeUndefined();
});

it.each([
  ["", "is empty"],
  [" \n", "is empty"],
  ["sk-abc\n", "contains a line break at character 7 of 7"],
  ["sk-\r\nabc", "contains a line break at character 4 of 8"],
  ["sk- abc", "contains a space at character 4 of 7"],
  ["\tsk-abc", "contains a space at character 1 of 7"],
  ["sk-abc\u00A0", "contains a space at character 7 of 7"],
  ["sk-\u0000abc", "contains a control character at character 4 of 7"],
  ["sk-\u007Fabc", "contains a control character at character 4 of 7"],
  ["\u201Csk-abc\u201D", "not ASCII (a pasted quote or dash, perhaps) at character 1 of 8"],
  ["sk\u2013abc", "not ASCII (a pasted quote or dash, perhaps) at character 3 of 6"],
  ['"sk-abc"', "begins or ends with a quote"],
  ["sk-abc'", "begins or ends with a quote"],
  ["x".repeat(16_385), "is longer than 16384 characters"],
])("%j is not a key, and the reason does not show it", (key, problem) => {
  expect(keyProblem(key)).toContain(problem);
  expect(keyProblem(key)).not.toContain("abc");
});
