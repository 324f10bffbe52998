import type { StoreName } from "../common/backend.ts";
import { follow } from "./follow.ts";
import { load } from "./load.ts";

/** Live events between processes: whether they come right, and what they cost. */
export async function bus(name: StoreName, seed: number): Promise<boolean> {
  const isRight = await follow(name, seed);
  return (await load(name)) && isRight;
}
