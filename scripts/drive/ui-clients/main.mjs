// `node main.mjs FOLDER RUNS SEED PART`: FOLDER has the clients installed; without PART all parts are run.
import { runParts } from "../../shared/parts.mjs";
import { checkAgUi, checkAgUiRoute } from "./ag-ui.mjs";
import { checkAiSdk, checkChat } from "./ai-sdk.mjs";
import { checkOpenAI, checkOpenAIRoute } from "./openai.mjs";
import { checkServers } from "./servers.mjs";
import { measureSpeed } from "./speed.mjs";
import { checkSvelte } from "./svelte.mjs";

const [folder = "", runs = "1000", seed = "1", part = ""] = process.argv.slice(2);
/** @type {import("./shared.mjs").Plan} */
const plan = { folder, runs: Number(runs), seed: Number(seed) };

const ok = await runParts(
  [
    { name: "ai: a chat", check: () => checkChat(plan) },
    { name: "ai: runs", check: () => checkAiSdk(plan) },
    { name: "ag-ui: route", check: () => checkAgUiRoute(plan) },
    { name: "ag-ui: runs", check: () => checkAgUi(plan) },
    { name: "openai: route", check: () => checkOpenAIRoute(plan) },
    { name: "openai: runs", check: () => checkOpenAI(plan) },
    { name: "servers", check: () => checkServers(plan) },
    { name: "svelte", check: () => checkSvelte(plan) },
    { name: "speed", check: () => measureSpeed(plan) },
  ].filter(({ name }) => name.startsWith(part)),
  (line) => console.log(line),
);
process.exitCode = ok ? 0 : 1;
