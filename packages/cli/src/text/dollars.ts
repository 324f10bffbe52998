/** Decimals of an ordinary sum, and those that are shown at least. */
const DECIMALS = 4;
const MIN_DECIMALS = 2;
/** Digits that are shown of a sum that is less than these decimals can say. */
const DIGITS = 2;
/** What `toFixed` takes. */
const MAX_DECIMALS = 100;

/** A sum of US dollars for people: `$1.50`, `$0.0123`, `$0.00000001`; never with an exponent. */
export function dollars(sum: number): string {
  const smallest = 10 ** -DECIMALS;
  const isTiny = sum > 0 && sum < smallest;
  const decimals = isTiny ? DIGITS - 1 - Math.floor(Math.log10(sum)) : DECIMALS;
  const [whole, part = ""] = sum.toFixed(Math.min(decimals, MAX_DECIMALS)).split(".");
  return `$${whole}.${part.replace(/0+$/, "").padEnd(MIN_DECIMALS, "0")}`;
}
