import { describe, expect, it } from "vitest";
import { TOOLS } from "../catalog.ts";
import type { Access } from "../contract/access.ts";
import { commandParts } from "./command/parts.ts";
import { type RuleList, RuleError, Rules, type Subject } from "./rules.ts";
import { ruleFor } from "./rule-for.ts";

function subject(
  tool: string,
  kind: Access["kind"] | undefined,
  targets: string[],
  asked: string[] = [],
): Subject {
  const commands = kind === "run" ? targets.map((line) => commandParts(line)) : [];
  return { tool, ...(kind && { kind }), targets, asked, commands };
}

function says(list: RuleList, about: Subject): string {
  const rules = new Rules(list, TOOLS);
  return (rules.objection(about) ?? rules.permission(about))?.effect ?? "nothing";
}

const run = (line: string): Subject => subject("shell", "run", [line]);

describe("Rules", () => {
  it.each([
    ["", "write the name of a tool"],
    ["shell(", "write the name of a tool"],
    ["shell()", "pattern is empty"],
    ["shel(ls)", 'there is no tool "shel". Did you mean shell?'],
    ["nothing", "Available: read, edit, write"],
    ["write(~/**)", "relative to the workspace"],
    ["write(../x)", "relative to the workspace"],
    ["read([a)", "not a path pattern"],
    ["fetch(https://exa*mple.org/)", "is not a host"],
    ["shell(in ../lib: ls)", "relative to the workspace"],
    ["shell(in [a: ls)", "not a path pattern"],
    ["shell(in src: )", "pattern is empty"],
    ["shell(unsandboxed:)", "pattern is empty"],
    ["fetch(https://**)", "is not a host"],
    [`shell(${"x".repeat(2000)})`, "more than 1000"],
  ])("refuses %.40j", (rule, message) => {
    const make = (): Rules => new Rules({ allow: ["read", rule] }, TOOLS);
    expect(make).toThrow(RuleError);
    expect(make).toThrow(message);
    expect(make).toThrow("rules.allow[1]");
  });

  it("knows tools of servers that come later", () => {
    expect(says({ allow: ["mcp__tracker__*"] }, subject("mcp__tracker__list", undefined, []))).toBe(
      "allow",
    );
    expect(says({ allow: ["mcp__tracker__*"] }, subject("mcp__other", undefined, []))).toBe(
      "nothing",
    );
  });

  it("puts deny before ask before allow", () => {
    const list = { allow: ["shell(git *)"], ask: ["shell(git p*)"], deny: ["shell(git push*)"] };
    expect(says(list, run("git log"))).toBe("allow");
    expect(says(list, run("git pull"))).toBe("ask");
    expect(says(list, run("git push"))).toBe("deny");
  });

  it("allows a command line only if every part is allowed", () => {
    const list = { allow: ["shell(git status*)", "shell(ls*)"] };
    expect(says(list, run("git status && ls | ls -l; true"))).toBe("allow");
    expect(says(list, run("git status && rm x"))).toBe("nothing");
    expect(says(list, run("git status $(rm x)"))).toBe("nothing");
    expect(says(list, run("./git status"))).toBe("nothing");
    expect(says(list, run("A=1 git status"))).toBe("nothing");
    expect(says(list, run("true"))).toBe("nothing");
  });

  it("forbids a command line if any part is forbidden", () => {
    const list = { allow: ["shell"], deny: ["shell(rm *)"] };
    for (const line of [
      "ls; rm x",
      "echo $(rm x)",
      "/bin/rm x",
      "'r'm x",
      "sudo rm x",
      "find . -exec rm {} +",
      `${"true;".repeat(60)}rm x`,
      `${" ".repeat(20_000)}rm x`,
    ]) {
      expect(says(list, run(line)), line.slice(0, 40)).toBe("deny");
    }
    expect(says(list, subject("jobs", "run", ["rm x"]))).toBe("deny");
  });

  it("asks where a part that is not known could be forbidden", () => {
    const list = { allow: ["shell"], deny: ["shell(npm publish*)"] };
    expect(says(list, run("npm $X"))).toBe("ask");
    expect(says(list, run("npm pub$X"))).toBe("ask");
    expect(says(list, run("$X publish"))).toBe("ask");
    expect(says(list, run("npm run $X"))).toBe("allow");
  });

  it("allows what a program can do beyond its name only where the rule names it", () => {
    expect(says({ allow: ["shell(sed *)"] }, run("sed -i s/a/b/ x"))).toBe("nothing");
    expect(says({ allow: ["shell(sed -i *)"] }, run("sed -i s/a/b/ x"))).toBe("allow");
    expect(says({ allow: ["shell(sed -i s/a/b/ x)"] }, run("sed -i s/a/b/ x"))).toBe("allow");
    expect(says({ allow: ["shell(sed -i *)"] }, run("sed -i '1e touch P' x"))).toBe("nothing");
    expect(says({ allow: ["shell(sed -i *)"] }, run("sed -i -f y x"))).toBe("nothing");
    expect(says({ allow: ["shell(curl -o *)"] }, run("curl -o a -K b"))).toBe("nothing");
    expect(says({ allow: ["shell(*)"] }, run("ssh host"))).toBe("nothing");
    expect(says({ allow: ["shell(ssh host*)"] }, run("ssh host ls"))).toBe("allow");
  });

  it("does not find the word of an escape in what a rule leaves open", () => {
    const line = run("sed -e '' -e '1e touch P' a");
    expect(says({ allow: ["shell(sed *)"] }, line)).toBe("nothing");
    expect(says({ allow: ["shell(* *)"] }, line)).toBe("nothing");
    expect(says({ allow: ["shell(find *)"] }, run("find *"))).toBe("nothing");
    expect(says({ allow: ["shell(cat src/*.ts)"] }, run("cat src/*.ts"))).toBe("allow");
  });

  it("never takes a word that expands for its text", () => {
    const dry = { allow: ["shell(deploy * --dry-run)"] };
    expect(says(dry, run("deploy a --dry-run"))).toBe("allow");
    expect(says(dry, run("deploy a $X\\ --dry-run"))).toBe("nothing");
    expect(says(dry, run("deploy {a,b}\\ --dry-run"))).toBe("nothing");
    expect(says(dry, run("deploy *\\ --dry-run"))).toBe("nothing");
    expect(says({ allow: ["shell(make {a,b}*)"] }, run("make {a,b}"))).toBe("nothing");
    expect(says({ allow: ["shell(npm run lint*)"] }, run("npm run lint{,:fix}"))).toBe("allow");
    expect(says({ allow: ["shell(cat src/*)"] }, run("cat src/*.ts"))).toBe("allow");
    expect(says({ allow: ["shell(cat src/*)"] }, run("cat ~/x src/a"))).toBe("nothing");
    expect(says({ allow: ["shell(cat ~/*)"] }, run("cat ~/x"))).toBe("nothing");
    // The very text is a person's own word for it.
    expect(says({ allow: ["shell(echo $HOME {a,b} ~)"] }, run("echo $HOME {a,b} ~"))).toBe("allow");
    expect(says({ deny: ["shell(rm /home/*)"] }, run("rm ~/x"))).toBe("ask");
  });

  it("can want an exact rule", () => {
    const rules = new Rules({ allow: ["shell(ls *)", "shell(npm test)", "shell"] }, TOOLS);
    expect(rules.permission(run("npm test"), true)?.effect).toBe("allow");
    expect(rules.permission(run("ls -l"), true)).toBeUndefined();
  });

  it("matches paths where they lead, and those that forbid also as they were written", () => {
    const list = { allow: ["edit(src/**)"], deny: ["write(src/secret/**)"] };
    expect(says(list, subject("edit", "write", ["src/a.ts"]))).toBe("allow");
    expect(says(list, subject("edit", "write", ["other/a.ts"], ["src/link.ts"]))).toBe("nothing");
    expect(says(list, subject("edit", "write", ["src/a.ts", "b.ts"]))).toBe("nothing");
    expect(says(list, subject("edit", "write", ["src/secret/a"]))).toBe("deny");
    expect(says(list, subject("edit", "write", ["x"], ["src/secret/a"]))).toBe("deny");
    expect(says(list, subject("edit", "write", ["SRC/Secret/a"]))).toBe("deny");
    expect(says({ deny: ["read(**/.env*)"] }, subject("read", "read", [".env"]))).toBe("deny");
    expect(says({ deny: ["read(**/.env*)"] }, subject("grep", "read", ["a/.env\nx"]))).toBe("deny");
    expect(says({ deny: ["write(.github)"] }, subject("edit", "write", [".github/x"]))).toBe(
      "deny",
    );
  });

  it("compares hosts as a whole, and takes no query that was not named", () => {
    const list = { allow: ["fetch(https://example.org/docs/**)", "fetch(https://*.example.com)"] };
    const fetch = (url: string): string => says(list, subject("fetch", "network", [url]));
    expect(fetch("https://example.org/docs/a/b")).toBe("allow");
    expect(fetch("https://example.org/docs/../x")).toBe("nothing");
    expect(fetch("https://example.org/docs/a?data=secret")).toBe("nothing");
    expect(fetch("https://example.org.evil.net/docs/a")).toBe("nothing");
    expect(fetch("https://example.org@evil.net/docs/a")).toBe("nothing");
    expect(fetch("http://example.org/docs/a")).toBe("nothing");
    expect(fetch("https://a.example.com/x")).toBe("allow");
    expect(fetch("https://evilexample.com/x")).toBe("nothing");
    const withQuery = { allow: ["fetch(https://example.org/find?q=**)"] };
    expect(says(withQuery, subject("fetch", "network", ["https://example.org/find?q=a"]))).toBe(
      "allow",
    );
  });

  it.each([
    "..%2fadmin",
    "..%2Fadmin",
    "a%2f..%2f..%2fadmin",
    "..%5cadmin",
    "..;/admin",
    "..;x=1/admin",
    "%2e%2e;/admin",
    "%2e.%2fadmin",
    "..%252fadmin",
    "%252e%252e/admin",
    "..%c0%afadmin",
    "..%3b/admin",
    ".%2fadmin",
    "a%2f..",
  ])("takes no way up that a server may see in an address: %s", (path) => {
    const fetch = subject("fetch", "network", [`https://example.org/docs/${path}`]);
    expect(says({ allow: ["fetch(https://example.org/docs/**)"] }, fetch)).toBe("nothing");
    expect(says({ deny: ["fetch(https://example.org/admin/**)"] }, fetch)).toBe("deny");
  });

  it.each(["a..b", "...", "v1.2/x", "a%2fb", "x;y=1", ".well-known/x", "a%20b", "..x"])(
    "allows names with dots, and signs that lead nowhere: %s",
    (path) => {
      const fetch = subject("fetch", "network", [`https://example.org/docs/${path}`]);
      expect(says({ allow: ["fetch(https://example.org/docs/**)"] }, fetch)).toBe("allow");
      expect(says({ deny: ["fetch(https://example.org/admin/**)"] }, fetch)).toBe("nothing");
    },
  );

  it.each([
    ["https://evil.org/**", "https://evil.org./x"],
    ["https://evil.org/**", "https://EVIL.org:8443/x"],
    ["https://evil.org/**", "https://e\u00advil.org/x"],
    ["https://evil.org/**", "https://ｅvil。org/x"],
    ["https://evil.org:443/**", "https://evil.org/x"],
    ["https://*.evil.org", "https://a.evil.org./x"],
    ["https://*.evil.org", "https://a.evil.org:444/x"],
    ["https://*.evil.org:443", "https://a.evil.org/x"],
    ["https://[2606:4700:0::1]/**", "https://[2606:4700::1]/x"],
    ["ssh://evil.org/**", "ssh://Evil.org/x"],
    ["https://x.org/admin/**", "https://x.org/%61dmin/a"],
    ["https://x.org/admin/**", "https://x.org/%2561dmin/a"],
    ["https://x.org/admin/**", "https://x.org//admin/a"],
    ["https://x.org/admin/**", "https://x.org/%2fadmin/a"],
    ["https://x.org/admin/**", "https://x.org/admin;v=1/a"],
    ["https://x.org/admin/**", "https://x.org/Admin/a"],
    ["https://x.org/admin/**", "https://x.org/admin%2fa"],
    ["https://x.org/admin/**", "https://x.org/admin%5ca"],
    ["https://x.org/a%20b/**", "https://x.org/a b/c"],
    ["https://x.org/ä/**", "https://x.org/%c3%a4/c"],
  ])("forbids by %s what a server takes for the same: %s", (pattern, url) => {
    const fetch = subject("fetch", "network", [url]);
    expect(says({ deny: [`fetch(${pattern})`] }, fetch)).toBe("deny");
  });

  it.each([
    ["https://good.org/**", "https://good.org./x"],
    ["https://good.org/**", "https://good.org:8443/x"],
    ["https://good.org:8443/**", "https://good.org/x"],
    ["https://good.org/docs/**", "https://good.org/%64ocs/x"],
    ["https://good.org/docs/**", "https://good.org//docs/x"],
    ["https://good.org/docs/**", "https://good.org/Docs/x"],
  ])("allows by %s nothing that is written in another way: %s", (pattern, url) => {
    const fetch = subject("fetch", "network", [url]);
    expect(says({ allow: [`fetch(${pattern})`] }, fetch)).toBe("nothing");
  });

  it("allows by a rule with the port that https has by itself what has none", () => {
    const fetch = subject("fetch", "network", ["https://good.org/x"]);
    expect(says({ allow: ["fetch(https://good.org:443/**)"] }, fetch)).toBe("allow");
  });

  it("covers a redirect within a server only as far as rules do", () => {
    const covers = (list: RuleList, from: string, to: string): boolean =>
      new Rules(list, TOOLS).coversRedirect("fetch", `https://x.org${from}`, `https://x.org${to}`);
    const docs = { allow: ["fetch(https://x.org/docs/**)"] };
    expect(covers(docs, "/docs/a", "/docs/b")).toBe(true);
    expect(covers(docs, "/docs/a", "/account")).toBe(false);
    expect(covers(docs, "/docs/a", "/docs/b?data=secret")).toBe(false);
    // A person or a mode allowed the first one.
    expect(covers(docs, "/blog", "/account")).toBe(true);
    const noAdmin = { deny: ["fetch(https://x.org/admin/**)"] };
    expect(covers(noAdmin, "/go", "/home")).toBe(true);
    expect(covers(noAdmin, "/go", "/admin/x")).toBe(false);
    expect(covers({ ask: ["fetch(https://x.org/admin/**)"] }, "/go", "/admin/x")).toBe(false);
    expect(covers({ allow: ["fetch"] }, "/go", "/home?q=1")).toBe(true);
  });

  it("does not let a rule for fetching allow another way to the network", () => {
    const push = subject("git", "network", ["https://example.org/docs/x"]);
    expect(says({ allow: ["fetch(https://example.org/docs/**)"] }, push)).toBe("nothing");
    expect(says({ deny: ["fetch(https://example.org/**)"] }, push)).toBe("deny");
  });

  it("asks about a tool without access where a rule has a pattern", () => {
    expect(says({ deny: ["mcp__x(a)"] }, subject("mcp__x", undefined, []))).toBe("ask");
    expect(says({ allow: ["mcp__x(a)"] }, subject("mcp__x", undefined, []))).toBe("nothing");
  });
});

describe("ruleFor", () => {
  it("suggests no rule for a command that reads as a place in a rule", () => {
    const suggest = (command: string): string | undefined =>
      ruleFor({ tool: "shell", access: { kind: "run", targets: [command], summary: "" } });
    expect(suggest("npm test")).toBe("shell(npm test)");
    expect(suggest("unsandboxed: ./x")).toBeUndefined();
    expect(suggest("unsandboxed in a: ./x")).toBeUndefined();
    expect(suggest("in a: ./x")).toBeUndefined();
  });
});
