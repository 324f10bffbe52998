import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { removePolicies, writePolicy } from "../testing/policy-file.ts";
import { findPolicyPlace, readPolicy } from "./file.ts";
import { POLICY_KEYS } from "./table.ts";

afterEach(removePolicies);

const OTHERS_WRITE = 0o666;
const FOLDER_FOR_ALL = 0o777;
const isRoot = process.getuid?.() === 0;

describe("where a policy is", () => {
  it.each([
    ["linux", "/etc/gyre/policy.json", 0],
    ["darwin", "/Library/Application Support/gyre/policy.json", 0],
    ["win32", "C:\\Program Files\\gyre\\policy.json", undefined],
  ] as const)("on %s", (platform, path, owner) => {
    expect(findPolicyPlace(platform)).toEqual({ path, ...(owner !== undefined && { owner }) });
  });

  it("may be nowhere", async () => {
    const { path } = writePolicy({});
    expect(await readPolicy({ path: join(dirname(path), "none.json"), owner: 0 })).toBeUndefined();
    expect(await readPolicy({ path: join(path, "policy.json"), owner: 0 })).toBeUndefined();
  });
});

describe("a policy that users can change ends the program", () => {
  const change = (what: string): RegExp => new RegExp(`can be changed by users: .*${what}`);

  it("by its mode", async () => {
    const place = writePolicy({});
    chmodSync(place.path, OTHERS_WRITE);
    await expect(readPolicy(place)).rejects.toThrow(change("policy.json has a mode that lets"));
  });

  it("by the mode of a folder above it", async () => {
    const place = writePolicy({});
    chmodSync(dirname(place.path), FOLDER_FOR_ALL);
    await expect(readPolicy(place)).rejects.toThrow(change("has a mode that lets others write"));
  });

  it("by the folder that a link leads to", async () => {
    const place = writePolicy({});
    const open = join(dirname(place.path), "open");
    mkdirSync(open);
    renameSync(place.path, join(open, "real.json"));
    chmodSync(open, FOLDER_FOR_ALL);
    symlinkSync(join(open, "real.json"), place.path);
    await expect(readPolicy(place)).rejects.toThrow(change("open has a mode"));
  });

  it("by its owner", async () => {
    const place = writePolicy({});
    // Root may give a file away; another user is not root, whose the file must be.
    const { chownSync } = await import("node:fs");
    if (isRoot) chownSync(place.path, 12_345, 12_345);
    await expect(readPolicy({ ...place, owner: 0 })).rejects.toThrow(
      /belongs to user \d+, not to 0/,
    );
  });

  it("says that the administrator has to act", async () => {
    const place = writePolicy({});
    chmodSync(place.path, OTHERS_WRITE);
    await expect(readPolicy(place)).rejects.toMatchObject({
      code: "bad_settings",
      message: expect.stringMatching(/Nothing runs before the administrator has fixed it\.$/),
    });
  });
});

describe("a policy that is wrong ends the program", () => {
  const SANDBOX = { sandbox: "required" };
  it.each([
    ["{", "is not JSON: line 1, column 2"],
    ["", "is not JSON"],
    ["[]", "must hold a JSON object"],
    ["null", "must hold a JSON object"],
    [{ maxmode: "ask" }, '"maxmode" is no key of a policy. Did you mean "maxMode"?'],
    [{ allow: ["shell"] }, '"allow" is no key of a policy.'],
    [{ maxMode: "none" }, 'maxMode is "none", but must be one of "ask"'],
    [{ sandbox: "auto" }, 'sandbox is "auto", but must be one of "required"'],
    [{ deny: "shell" }, 'deny is "shell", but must be a list of texts'],
    [{ plugins: "no" }, 'plugins is "no", but must be true or false'],
    [{ network: false }, '"network" holds in a sandbox alone'],
    [{ domains: [] }, '"domains" holds in a sandbox alone'],
    [{ ...SANDBOX, domains: ["https://a.org/"] }, "domains is"],
    [{ ...SANDBOX, domains: ["1.2"] }, '"1.2" is no domain.'],
    [{ modelHosts: ["a..b"] }, '"a..b" is no domain.'],
    [{ folders: ["work"] }, 'folders: "work" is not an absolute path'],
  ])("%j", async (content, problem) => {
    const place = writePolicy(content);
    const failed = await readPolicy(place).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "bad_settings" });
    expect(String(failed)).toContain(problem);
    expect(String(failed)).toContain(place.path);
  });

  it("where it cannot be read", async () => {
    const place = writePolicy({});
    rmSync(place.path);
    mkdirSync(place.path);
    await expect(readPolicy(place)).rejects.toThrow("is not a file");
    rmSync(place.path, { recursive: true });
    symlinkSync("nowhere.json", place.path);
    await expect(readPolicy(place)).rejects.toThrow("is a link that leads nowhere");
  });

  it("names all that is wrong at once", async () => {
    await expect(readPolicy(writePolicy({ hooks: 1, mcp: 2 }))).rejects.toThrow(
      "hooks is 1, but must be true or false. mcp is 2, but must be true or false",
    );
  });
});

it("takes every key, and a schema", async () => {
  const content = {
    $schema: "policy.schema.json",
    maxMode: "auto-edit",
    sandbox: "required",
    network: true,
    domains: ["*.example.org"],
    folders: ["/srv"],
    ask: ["shell(git push*)"],
    deny: ["read(**/.env*)"],
    models: ["anthropic/*"],
    modelHosts: ["api.anthropic.com"],
    mcp: false,
    plugins: false,
    hooks: false,
    projectTrust: false,
  };
  const policy = await readPolicy(writePolicy(content));
  const { $schema: _schema, ...rules } = content;
  expect(policy?.rules).toEqual(rules);
  expect(Object.keys(rules)).toEqual(POLICY_KEYS);
  expect(policy?.describe()).toContain('maxMode "auto-edit", sandbox "required"');
});

it("a byte order mark does not matter", async () => {
  const place = writePolicy({});
  writeFileSync(place.path, '\uFEFF{"maxMode": "ask"}');
  expect((await readPolicy(place))?.modes).toEqual(["ask", "plan"]);
});
