// Examples with a page, installed from tarballs as a stranger would install them, and used in Chromium:
// `npm run test:examples`; `-- next-chat` says which. Needs npm's registry, and a build.
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { withChromium } from "../shared/chromium.mjs";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { installExample, packFor, startExample } from "./examples/install.mjs";
import { askOnce, walkChat } from "./examples/walk.mjs";
import { installForeign } from "./foreign.mjs";

/** What the streams for pages say, in place of what the service wrote. */
const OUR_ERROR = "does not accept the credential of this server";

/** What a service says that stands in for the real one. */
const ANSWER = "Good day from the service.";

/** @typedef {import("../shared/parts.mjs").Findings} Findings */

/**
 * By folder. `reconnects`: the page goes on by itself when its connection is cut. `errorText`: how it shows a key that is
 * wrong. `oldestNode`: where it needs a newer Node than we do. `isLong`: runs in `npm run test:long` alone.
 *
 * @typedef {{ reconnects: boolean, errorText: string, oldestNode?: number, isLong?: boolean }} Example
 * @type {ReadonlyMap<string, Example>}
 */
const EXAMPLES = new Map(
  Object.entries({
    "plain-page": { reconnects: true, errorText: OUR_ERROR },
    "hono-react": { reconnects: true, errorText: "The key of this server is not valid." },
    "next-chat": { reconnects: false, errorText: OUR_ERROR, oldestNode: 22, isLong: true },
  }),
);

const given = process.argv.slice(2);
const unknown = given.find((name) => !EXAMPLES.has(name));
if (unknown !== undefined) {
  throw new Error(`No example "${unknown}". There are: ${[...EXAMPLES.keys()].join(", ")}.`);
}
const chosen = [...EXAMPLES].filter(([name, { isLong = false }]) =>
  given.length > 0 ? given.includes(name) : !isLong,
);

/**
 * @param {import("playwright-core").Browser} browser
 * @param {string} folder
 * @returns {import("../shared/parts.mjs").Part[]}
 */
function listParts(browser, folder) {
  /** @type {ReadonlyMap<string, string>} */
  let tarballs = new Map();
  let node = process.execPath;
  const packAll = async () => {
    tarballs = await packFor(
      folder,
      chosen.map(([name]) => name),
    );
    return { problems: [], figures: [[...tarballs.keys()].join(", ")] };
  };
  const drive = chosen.flatMap(([name, example]) => {
    const { oldestNode } = example;
    const own = join(folder, name);
    const install = async () => {
      if (oldestNode !== undefined) {
        const nodeFolder = join(folder, "node");
        mkdirSync(nodeFolder);
        ({ node } = await installForeign(nodeFolder, oldestNode, {}));
      }
      await installExample(name, own, tarballs, node);
      return { problems: [] };
    };
    /**
     * @param {(address: URL) => Promise<Findings>} use
     * @param {Readonly<Record<string, string>>} [env]
     */
    const withServer = async (use, env) => {
      const { address, output, end } = await startExample(own, node, env);
      try {
        const { problems, figures = [] } = await use(address);
        return { problems: problems.length > 0 ? [...problems, output()] : [], figures };
      } finally {
        await end();
      }
    };
    const walk = () => withServer((address) => walkChat(browser, address, example));
    const askModel = async () => {
      const { scriptedService } =
        await import("../../packages/cli/dist/testing/scripted-service.js");
      const service = await scriptedService(() => ({ say: ANSWER }));
      const env = {
        GYRE_MODEL: "anthropic/claude-sonnet-4-5",
        ANTHROPIC_API_KEY: "sk-ant-for-this-check-alone",
        ANTHROPIC_BASE_URL: service.url,
      };
      try {
        return await withServer((address) => askOnce(browser, address, ANSWER), env);
      } finally {
        await service.close();
      }
    };
    return [
      { name: `install ${name}`, check: install },
      { name, check: walk },
      { name: `${name} with a model`, check: askModel },
    ];
  });
  return [{ name: "pack", check: packAll }, ...drive];
}

await withChromium((browser) =>
  inTemporaryFolder((folder) => runParts(listParts(browser, folder), (line) => console.log(line))),
);
