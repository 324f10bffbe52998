import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";

export const REPOSITORY = "tea/shop";
export const TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz";
const PAGE = 100;

export interface FakeComment {
  id: number;
  body: string;
  user: { login: string; type: "User" | "Bot" };
  author_association: string;
  created_at: string;
  updated_at: string;
  html_url: string;
  /** In answer to a comment of a review. */
  repliesTo?: number;
}

/** An answer in place of the usual one, to requests whose method and path fit. */
export interface Fault {
  match: RegExp;
  status: number;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** How often. Default: once. */
  times?: number;
  /** The request is carried out nevertheless. */
  isDone?: boolean;
}

export interface FakeGitHub {
  readonly url: string;
  /** The bare repository. */
  readonly remote: string;
  /** `METHOD path`, of the API alone. */
  readonly requests: readonly string[];
  readonly comments: FakeComment[];
  readonly reviewComments: FakeComment[];
  readonly pulls: Record<string, unknown>[];
  readonly reactions: string[];
  readonly faults: Fault[];
  readonly permissions: Record<string, string>;
  readonly issue: Record<string, unknown>;
  /** What `GET pulls/N` has. */
  readonly pull: Record<string, unknown>;
  diff: string;
  /** Settles when the condition holds, which is looked at after each request. */
  until(condition: () => boolean): Promise<void>;
  /** Runs git in the bare repository. */
  git(...args: string[]): string;
  close(): Promise<void>;
}

export const TIME = "2026-05-03T12:00:00Z";

export function makeComment(id: number, login: string, body: string, at = TIME): FakeComment {
  return {
    id,
    body,
    user: { login, type: "User" },
    author_association: "NONE",
    created_at: at,
    updated_at: at,
    html_url: `https://github.example/c/${id}`,
  };
}

/** GitHub's API and its git server, with one repository that is a real one. */
export async function createFakeGitHub(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<FakeGitHub> {
  const remote = join(folder, "remotes", `${REPOSITORY}.git`);
  createRemote(folder, remote, files);
  const watchers = new Set<() => void>();
  const requests: string[] = [];
  const children = new Set<ChildProcess>();
  let next = 1000;
  const github = {
    remote,
    requests,
    comments: [] as FakeComment[],
    reviewComments: [] as FakeComment[],
    pulls: [] as Record<string, unknown>[],
    reactions: [] as string[],
    faults: [] as Fault[],
    permissions: { ann: "write" } as Record<string, string>,
    issue: {
      number: 7,
      title: "Add green tea",
      body: "We sell black tea alone.",
      user: { login: "zoe", type: "User" },
      author_association: "NONE",
      created_at: TIME,
      comments: 0,
    } as Record<string, unknown>,
    pull: {
      number: 7,
      title: "Add green tea",
      user: { login: "ann" },
      head: { ref: "main", repo: { full_name: REPOSITORY } },
      base: { ref: "main" },
    } as Record<string, unknown>,
    diff: "diff --git a/tea.txt b/tea.txt\n",
    git: (...args: string[]) => execFileSync("git", args, { cwd: remote, encoding: "utf8" }),
  };

  const answer = (method: string, url: URL, body: Record<string, unknown>): unknown => {
    const path = url.pathname.slice(`/api/repos/${REPOSITORY}`.length);
    const page = Number(url.searchParams.get("page") ?? "1") - 1;
    const list = path.startsWith("/pulls") ? github.reviewComments : github.comments;
    const since = url.searchParams.get("since");
    const add = (more: Partial<FakeComment> = {}): FakeComment => {
      const made = { ...makeComment(next++, "github-actions[bot]", String(body["body"])), ...more };
      made.user.type = "Bot";
      made.created_at = made.updated_at = new Date().toISOString();
      list.push(made);
      return made;
    };
    if (method === "GET" && path === "") return { default_branch: "main" };
    const person = /^\/collaborators\/(.+)\/permission$/.exec(path)?.[1];
    if (person !== undefined) {
      const permission = github.permissions[decodeURIComponent(person)];
      return permission === undefined ? undefined : { permission };
    }
    if (path.endsWith("/reactions")) {
      github.reactions.push(path);
      return {};
    }
    if (path === "/issues/7") return { ...github.issue, comments: github.comments.length };
    if (path === "/pulls/7") return github.pull;
    if (/^\/(?:issues|pulls)\/7\/comments$/.test(path)) {
      if (method === "POST") return add();
      const kept = list.filter((each) => since === null || each.updated_at >= since);
      return kept.slice(page * PAGE, (page + 1) * PAGE);
    }
    const reply = /^\/pulls\/7\/comments\/(\d+)\/replies$/.exec(path)?.[1];
    if (reply !== undefined) return add({ repliesTo: Number(reply) });
    const changed = /^\/(?:issues|pulls)\/comments\/(\d+)$/.exec(path)?.[1];
    if (changed !== undefined && method === "PATCH") {
      const found = list.find(({ id }) => id === Number(changed));
      return found && Object.assign(found, { body: body["body"] });
    }
    if (path === "/pulls" && method === "POST") {
      github.pulls.push(body);
      return { html_url: `https://github.example/${REPOSITORY}/pull/8` };
    }
    return undefined;
  };

  const serveApi = async (incoming: IncomingMessage, response: ServerResponse, url: URL) => {
    const text = await readText(incoming);
    const method = incoming.method ?? "GET";
    const what = `${method} ${url.pathname.slice("/api".length)}${url.search}`;
    requests.push(what);
    const send = (status: number, body: string, headers = {}): void => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    };
    if (incoming.headers.authorization !== `Bearer ${TOKEN}`) {
      return send(401, '{"message":"Bad credentials"}');
    }
    const fault = github.faults.find((each) => each.match.test(what));
    const result = (): unknown => answer(method, url, text === "" ? {} : JSON.parse(text));
    if (fault) {
      fault.times = (fault.times ?? 1) - 1;
      if (fault.times <= 0) github.faults.splice(github.faults.indexOf(fault), 1);
      if (fault.isDone) result();
      return send(fault.status, fault.body ?? '{"message":"Out of order"}', fault.headers);
    }
    if (incoming.headers.accept?.endsWith("diff")) return send(200, github.diff);
    const found = result();
    return found === undefined
      ? send(404, '{"message":"Not Found"}')
      : send(method === "POST" ? 201 : 200, JSON.stringify(found));
  };

  const server = createServer((incoming, response) => {
    const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
    if (url.pathname.startsWith("/api/")) {
      void serveApi(incoming, response, url).then(() => {
        for (const look of [...watchers]) look();
      });
    } else children.add(serveGit(join(folder, "remotes"), incoming, response, url));
  });
  await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
  const { port } = server.address() as AddressInfo;
  return Object.assign(github, {
    url: `http://127.0.0.1:${port}`,
    until: (condition: () => boolean) =>
      new Promise<void>((settle) => {
        const look = (): void => {
          if (!condition()) return;
          watchers.delete(look);
          settle();
        };
        watchers.add(look);
        look();
      }),
    close: () =>
      new Promise<void>((settle) => {
        for (const child of children) child.kill();
        server.close(() => settle());
        server.closeAllConnections();
      }),
  });
}

function createRemote(
  folder: string,
  remote: string,
  files: Readonly<Record<string, string>>,
): void {
  const seed = join(folder, "seed");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(seed, name)), { recursive: true });
    writeFileSync(join(seed, name), text);
  }
  const git = (...args: string[]): void => {
    const own = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    execFileSync("git", [...own, ...args], { cwd: seed, stdio: "pipe" });
  };
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "Tea");
  mkdirSync(dirname(remote), { recursive: true });
  git("clone", "-q", "--bare", seed, remote);
  execFileSync("git", ["config", "http.receivepack", "true"], { cwd: remote });
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

/** Git's own server, behind the token. */
function serveGit(
  root: string,
  incoming: IncomingMessage,
  response: ServerResponse,
  url: URL,
): ChildProcess {
  const basic = Buffer.from(`x-access-token:${TOKEN}`).toString("base64");
  const isAllowed = incoming.headers.authorization === `basic ${basic}`;
  const backend = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: isAllowed ? url.pathname : "/none",
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: incoming.method,
      CONTENT_TYPE: incoming.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: incoming.headers["content-encoding"] ?? "",
      REMOTE_USER: "x",
      ...(incoming.headers["git-protocol"] && {
        GIT_PROTOCOL: String(incoming.headers["git-protocol"]),
      }),
    },
  });
  incoming.pipe(backend.stdin);
  backend.stdin.on("error", () => {});
  const parts: Buffer[] = [];
  backend.stdout.on("data", (part: Buffer) => parts.push(part));
  backend.on("close", () => {
    const whole = Buffer.concat(parts);
    const end = whole.indexOf("\r\n\r\n");
    const headers = whole.subarray(0, end).toString("utf8").split("\r\n");
    let status = isAllowed ? 200 : 401;
    for (const header of headers) {
      const [name = "", value = ""] = header.split(": ");
      if (name === "Status" && isAllowed) status = Number.parseInt(value, 10);
      else if (name !== "Status" && name !== "") response.setHeader(name, value);
    }
    response.writeHead(status).end(whole.subarray(end + 4));
  });
  return backend;
}
