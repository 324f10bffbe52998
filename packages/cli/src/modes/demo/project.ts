/** What the demo's user asks for. */
export const TASK = "The tests of this small project fail. Find out why, and fix it.";

/** The reporter is named because Node's choice for a pipe differs between its versions. */
export const TEST_COMMAND = "node --test --test-reporter=spec";

export const SOURCE_FILE = "bill.js";
export const TEST_FILE = "bill.test.js";

/** The line with the bug, and the lines without it. */
export const BROKEN_CODE = `  return Array(people).fill(share);
`;
export const FIXED_CODE = `  const left = cents % people;
  return Array(people).fill(share).fill(share + 1, 0, left);
`;

/** A project that loses a cent, by file name. Nothing to install: Node runs its tests. */
export const PROJECT_FILES: Readonly<Record<string, string>> = {
  "package.json": `{ "name": "bill", "private": true, "type": "module" }
`,
  [SOURCE_FILE]: `/** Shares of a bill in whole cents, as even as they can be. */
export function splitBill(cents, people) {
  const share = Math.floor(cents / people);
${BROKEN_CODE}}
`,
  [TEST_FILE]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { splitBill } from "./bill.js";

const sum = (shares) => shares.reduce((total, share) => total + share, 0);

test("one person pays it all", () => {
  assert.deepEqual(splitBill(1250, 1), [1250]);
});

test("an even bill gives equal shares", () => {
  assert.deepEqual(splitBill(900, 3), [300, 300, 300]);
});

test("no cent is lost", () => {
  assert.equal(sum(splitBill(1000, 3)), 1000);
});
`,
};
