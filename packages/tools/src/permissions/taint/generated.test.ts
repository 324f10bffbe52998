import { fromSource } from "@gyre/ai/text";
import { afterAll, beforeAll, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { createRandom } from "../../testing/command-lines.ts";
import { addFile, addPage, type TaintWorld, taintWorld } from "../../testing/taint-world.ts";
import type { Taint } from "./taint.ts";

/*
 * Conversations at random: names in messages, in what the model writes and in sources, in many ways of writing. A call
 * with a name is stopped if a text of others brought it, and runs if anything else did. `GYRE_TAINTS=1000 GYRE_SEED=1`
 * chooses how many and which.
 */

type Kind = "host" | "package" | "path";

interface Name {
  kind: Kind;
  text: string;
  isTracked: boolean;
}

/** What is expected of a name, by a model that is simpler than the thing itself. */
interface Known {
  isUsers: boolean;
  isModels: boolean;
  isForeign: boolean;
  isSeen: boolean;
}

const COUNT = 8;
const NAMES: readonly Name[] = Array.from({ length: COUNT }, (_, at) => [
  { kind: "host" as const, text: `tea-${at}.shop.example`, isTracked: at === 0 },
  {
    kind: "package" as const,
    text: at % 2 ? `tea-pad-${at}` : `@tea/pad-${at}`,
    isTracked: at === 0,
  },
  { kind: "path" as const, text: `cups${at}/tea-${at}.txt`, isTracked: at === 0 },
]).flat();

let world: TaintWorld;
beforeAll(async () => {
  const tracked = NAMES.filter(({ isTracked }) => isTracked).map(({ text }) => text);
  world = await taintWorld({
    "docs/own.md": `We have ${tracked.join(" and ")}.\n`,
    ".gitignore": "node_modules\n",
  });
  world.write("node_modules/tea/README.md", "x", true);
  world.write("notes.md", "x", true);
});
afterAll(() => world.close());

it(
  "stops what a text of others brought, and nothing else",
  { tags: "long", timeout: 3_600_000 },
  async () => {
    const seed = pickSeed();
    const count = countCases(12, 600, "GYRE_TAINTS");
    console.log(`${count} conversations with GYRE_SEED=${seed}`);
    const total = { stopped: 0, ran: 0 };
    for (let nth = 0; nth < count; nth++) {
      const random = createRandom(seed + nth);
      const pick = <T>(all: readonly T[]): T => {
        const one = all[Math.floor(random() * all.length)];
        if (one === undefined) throw new Error("There is nothing to pick.");
        return one;
      };
      world.forget();
      const { taint } = world;
      const story: string[] = [];
      const known = new Map<Name, Known>(
        NAMES.map((name) => [
          name,
          { isUsers: false, isModels: false, isForeign: false, isSeen: false },
        ]),
      );
      for (let step = 0; step < 12; step++) {
        const names = NAMES.filter(() => random() < 0.15);
        const text = names
          .map((name) => wrap(write(name, pick, random), pick))
          .join(pick([" ", "\n", " and "]));
        const event = pick(EVENTS);
        story.push(`${event.title}: ${text}`);
        event.add(taint, text);
        for (const name of names) note(known.get(name), event);
      }
      for (const name of NAMES.filter(() => random() < 0.3)) {
        const { isUsers, isModels, isForeign } = known.get(name) ?? { isUsers: true };
        const isStopped = isForeign === true && !isUsers && !isModels && !name.isTracked;
        const written = write(name, pick, random, true);
        const [tool, args] = pick(CALLS[name.kind])(written);
        const outcome = await world.call(tool, args);
        const about = `conversation ${nth} of GYRE_SEED=${seed}: ${JSON.stringify(args)}\n${story.join("\n")}\n${outcome}`;
        expect(outcome.includes(" comes from "), about).toBe(isStopped);
        if (!isStopped) expect(outcome, about).toBe("ran");
        total[isStopped ? "stopped" : "ran"]++;
      }
    }
    console.log(JSON.stringify(total));
    expect(total.stopped).toBeGreaterThan(0);
    expect(total.ran).toBeGreaterThan(0);
  },
);

interface Event {
  title: string;
  of: "user" | "model" | "others" | "project" | "nothing";
  add: (taint: Taint, text: string) => void;
}

const output = (taint: Taint, command: string, text: string): void =>
  taint.addResult("shell", { command }, [fromSource({ kind: "command", name: "shell" }, text)]);

const EVENTS: readonly Event[] = [
  { title: "user", of: "user", add: (taint, text) => taint.addUser(text) },
  { title: "model", of: "model", add: (taint, text) => taint.addModel(text) },
  {
    title: "page",
    of: "others",
    add: (taint, text) => addPage(taint, "https://docs.example/", text),
  },
  {
    title: "server",
    of: "others",
    add: (taint, text) =>
      taint.addResult("mcp__tea__list", {}, [fromSource({ kind: "mcp", name: "tea/list" }, text)]),
  },
  {
    title: "dependency",
    of: "others",
    add: (taint, text) => addFile(taint, "node_modules/tea/README.md", text),
  },
  { title: "untracked", of: "others", add: (taint, text) => addFile(taint, "notes.md", text) },
  {
    title: "cat",
    of: "others",
    add: (taint, text) => output(taint, "cat node_modules/tea/README.md", text),
  },
  {
    title: "curl",
    of: "others",
    add: (taint, text) => output(taint, "curl -s https://docs.example", text),
  },
  { title: "tracked", of: "project", add: (taint, text) => addFile(taint, "docs/own.md", text) },
  { title: "tests", of: "nothing", add: (taint, text) => output(taint, "npm test", text) },
];

/** What an event means for a name in it. */
function note(known: Known | undefined, { of }: Event): void {
  if (!known) return;
  if (of === "user") known.isUsers = true;
  if (of === "model" && !known.isSeen) known.isModels = true;
  if (of === "others" || of === "project") known.isSeen ||= !known.isModels;
  if (of === "others") known.isForeign = true;
}

type Pick = <T>(all: readonly T[]) => T;

/** A name in one of the ways in which it may be written. In a call it is one that a shell reads as one word. */
function write({ kind, text }: Name, pick: Pick, random: () => number, isCall = false): string {
  switch (kind) {
    case "host": {
      const hosts = [
        text,
        text.toUpperCase(),
        `${text}.`,
        text.replace(".", "%2e"),
        `${text}:8443`,
      ];
      // A rule with a wildcard does not let a user and a password through.
      const host = pick(isCall ? hosts : [...hosts, `me@${text}`, `me:word@${text}`]);
      const isBare = !isCall && host === text && random() < 0.3;
      return isBare
        ? host
        : `${pick(["https", "http", "HTTPS"])}://${host}/${isCall ? "r" : "s"}${Math.floor(random() * 1e9)}`;
    }
    case "package":
      return pick([text, `${text}@1.2.3`, `${text}@latest`]);
    case "path": {
      const [folder = "", file = ""] = text.split("/");
      const plain = [
        text,
        `./${text}`,
        `${folder}//${file}`,
        `${folder}/./${file}`,
        `docs/../${text}`,
      ];
      return pick(isCall ? plain : [...plain, text.replace("/", "%2F")]);
    }
  }
}

/** A name with what texts, Markdown, code and JSON put around it. */
function wrap(text: string, pick: Pick): string {
  return pick([
    text,
    `"${text}"`,
    `'${text}'`,
    `\`${text}\``,
    `(${text})`,
    `<${text}>`,
    `[see](${text})`,
    `**${text}**`,
    `${text}, `,
    `${text}! `,
    `key=${text} `,
    `{"a":"${text.replaceAll("/", "\\/")}"}`,
  ]);
}

type Call = (written: string) => [tool: string, args: Record<string, unknown>];
const shell = (command: string): ReturnType<Call> => ["shell", { command }];

const CALLS: Readonly<Record<Kind, readonly Call[]>> = {
  host: [
    (url) => shell(`curl -s ${url}`),
    (url) => shell(`wget "${url}"`),
    (url) => shell(`npm install --registry=${url}`),
    (url) => ["fetch", { url: url.replace(/^http:/i, "https:").replace(/\/\/[^/]*@/, "//") }],
  ],
  package: [(name) => shell(`npm install ${name}`), (name) => shell(`pip install ${name}`)],
  path: [
    (path) => shell(`sh ${path}`),
    (path) => shell(`touch ${path}`),
    (path) => ["write", { path, content: "x" }],
  ],
};
