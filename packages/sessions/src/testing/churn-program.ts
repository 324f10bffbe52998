import { SessionStore } from "../store.ts";
import { actRandomly, createRandom } from "./churn.ts";

/** A program that acts on the sessions of a folder until it is killed, and prints a line for each act. */
const [, , folder = "", seed = "1"] = process.argv;
const store = new SessionStore(folder);
const random = createRandom(Number(seed));
for (;;) {
  await actRandomly(store, random);
  console.log("ok");
}
