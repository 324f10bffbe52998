import { describe, expect, it } from "vitest";
import { hintAtSandbox } from "./sandbox-hint.ts";
import type { ShellOptions } from "./tool.ts";

const captured = (head: string) => ({ head, tail: "", bytes: head.length, lines: 1 });
const hint = (text: string, options: ShellOptions = {}, exitCode = 1): string | undefined =>
  hintAtSandbox({ exitCode, stdout: captured(""), stderr: captured(text) }, options);

describe("what is said of a failure in the sandbox", () => {
  it.each([
    "npm error code EAI_AGAIN",
    "curl: (6) Could not resolve host: example.com",
    "wget: unable to resolve host address 'example.com'",
    "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
    "error: failed to lookup address information: Temporary failure in name resolution",
    "dial tcp: lookup proxy.golang.org: no such host",
    "connect: Network is unreachable",
    "Error: getaddrinfo ENOTFOUND registry.npmjs.org",
    "Temporary failure resolving 'deb.debian.org'",
    "pip: [Errno -5] No address associated with hostname",
  ])("is the setting for the network: %s", (text) => {
    expect(hint(text)).toBe(
      "The sandbox has no network; the user can allow hosts with the setting `domains`, or all with the setting `network`.",
    );
    expect(hint(text, { domains: ["*.npmjs.org"] })).toContain(
      "proxy (HTTPS_PROXY) to *.npmjs.org;",
    );
    expect(hint(text, { network: true })).toBeUndefined();
    expect(hint(text, {}, 0)).toBeUndefined();
  });

  it.each([
    "touch: cannot touch '/usr/x': Read-only file system",
    "Error: EROFS: read-only file system, open '/home/u/.gradle/x'",
    "mv: cannot move '.vscode': Device or resource busy",
    "EBUSY: resource busy or locked, rename",
  ])("is the setting for folders: %s", (text) => {
    expect(hint(text)).toContain("setting `writable`");
  });

  it.each([
    "mount: /mnt: Operation not permitted",
    'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
    "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set",
    "No usable sandbox! Update your kernel",
    "Error: EPERM: operation not permitted, chown 'x'",
  ])("is to ask for a run outside: %s", (text) => {
    expect(hint(text)).toContain("no rights of root");
  });

  it("names a hidden place that could not be read", () => {
    const options = { hidden: ["/home/u/.ssh"] };
    const text = "cat: /home/u/.ssh/id: Permission denied";
    expect(hint(text, options)).toContain("The sandbox hides /home/u/.ssh:");
    expect(hint("cat: /srv/x: Permission denied", options)).toBeUndefined();
  });

  it("finds it in the output, too", () => {
    const end = { exitCode: 1, stdout: captured("EROFS"), stderr: captured("") };
    expect(hintAtSandbox(end, {})).toContain("`writable`");
  });

  it("is nothing for other failures", () => {
    expect(hint("3 tests failed")).toBeUndefined();
  });
});
