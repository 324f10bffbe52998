import fc from "fast-check";
import { expect, it } from "vitest";
import { pickSeed } from "../../../../../tests/support/cases.ts";
import { ApprovalSigner, type SignedCall } from "./approvals.ts";

const call = fc.record({
  chat: fc.string(),
  id: fc.string(),
  name: fc.string(),
  input: fc.jsonValue(),
});

it("accepts a signature of this very call, and of no other", async () => {
  const signer = new ApprovalSigner("a secret made by chance");
  const other = new ApprovalSigner("another secret made so");
  const isOne = (a: SignedCall, b: SignedCall): boolean =>
    JSON.stringify([a.chat, a.id, a.name, a.input]) ===
    JSON.stringify([b.chat, b.id, b.name, b.input]);
  await fc.assert(
    fc.asyncProperty(call, call, async (one, two) => {
      const signature = await signer.sign(one);
      expect(await signer.verify(JSON.parse(JSON.stringify(one)), signature)).toBe(true);
      expect(await other.verify(one, signature)).toBe(false);
      // Negative zero is zero in JSON.
      if (!isOne(one, two)) expect(await signer.verify(two, signature)).toBe(false);
    }),
    { seed: pickSeed() },
  );
});

it("does not mind the order of keys, and minds everything else", async () => {
  const signer = new ApprovalSigner("a secret made by chance");
  const base = { chat: "c", id: "i", name: "n" };
  const signature = await signer.sign({ ...base, input: { a: 1, b: { c: [1, 2], d: null } } });
  const verify = (input: unknown): Promise<boolean> => signer.verify({ ...base, input }, signature);
  expect(await verify({ b: { d: null, c: [1, 2] }, a: 1 })).toBe(true);
  expect(await verify({ b: { d: null, c: [2, 1] }, a: 1 })).toBe(false);
  expect(await verify({ b: { c: [1, 2] }, a: 1 })).toBe(false);
  expect(
    await verify([
      ["a", 1],
      ["b", { c: [1, 2], d: null }],
    ]),
  ).toBe(false);
  expect(await signer.verify({ ...base, name: "ni", id: "", input: {} }, "")).toBe(false);
});
