// The entry of the GitHub Action: `action.yml` names it.
import { runAction } from "./run.mjs";
import { errorText } from "./json.mjs";

const controller = new AbortController();
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
  process.on(signal, () => controller.abort());
}
try {
  process.exitCode = await runAction(process.env, controller.signal);
} catch (error) {
  console.log(`::error::${errorText(error).replaceAll("%", "%25").replaceAll("\n", "%0A")}`);
  process.exitCode = 1;
}
