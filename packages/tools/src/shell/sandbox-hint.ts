import type { ProgramEnd } from "../process/processes.ts";
import type { ShellOptions } from "./tool.ts";

const WRITE_FAILED = matchAny(
  String.raw`\bEROFS\b`,
  "Read-only file system",
  String.raw`\bEBUSY\b`,
  "Device or resource busy",
);
const NETWORK_FAILED = matchAny(
  String.raw`\bEAI_AGAIN\b`,
  String.raw`\bENETUNREACH\b`,
  String.raw`\bENETDOWN\b`,
  String.raw`getaddrinfo ENOTFOUND`,
  "Could not resolve (?:host|proxy)",
  "unable to resolve host",
  "Temporary failure in name resolution",
  "Temporary failure resolving",
  "failure in name resolution",
  "failed to lookup address information",
  "Name or service not known",
  "No address associated with hostname",
  "Network is unreachable",
  "Network unreachable",
  String.raw`dial (?:tcp|udp).*(?:no such host|server misbehaving|connection refused)`,
);
const RIGHT_FAILED = matchAny(
  String.raw`\bEPERM\b`,
  "Operation not permitted",
  "no new privileges",
  "must be owned by uid 0 and have the setuid bit set",
  "No usable sandbox",
);
const READ_FAILED = matchAny(String.raw`\bEACCES\b`, "Permission denied");

/** Also where git goes on without them, and claims success. */
const GIT_SETTINGS_FAILED = matchAny(
  "could not (?:lock|write) config file",
  String.raw`\.git/hooks/?\S*: .*Read-only`,
);
const SIGNING_FAILED = matchAny("failed to sign the data", "gpg failed to sign", "No secret key");

function matchAny(...patterns: readonly string[]): RegExp {
  return new RegExp(patterns.join("|"), "i");
}

/** Whether the output of a command says that there was no network. */
export function isNetworkFailure(output: string): boolean {
  return NETWORK_FAILED.test(output);
}

/** Whether it says that a place was read-only. */
export function isWriteFailure(output: string): boolean {
  return WRITE_FAILED.test(output);
}

/** What to set where a command failed in the sandbox and says that it could not write, read, connect or have a right. */
export function hintAtSandbox(
  { exitCode, stdout, stderr }: Pick<ProgramEnd, "exitCode" | "stdout" | "stderr">,
  { network = false, domains = [], hidden = [] }: ShellOptions,
): string | undefined {
  // Many a command sends its errors to where its output goes.
  const output = [stderr.head, stderr.tail, stdout.head, stdout.tail].join("\n");
  if (GIT_SETTINGS_FAILED.test(`${stderr.head}\n${stderr.tail}`)) {
    return "The sandbox keeps these settings and hooks of git read-only; ask the user to change them, or to run it outside of the sandbox (unsandboxed).";
  }
  if (exitCode === 0) return undefined;
  if (SIGNING_FAILED.test(output)) {
    return "The sandbox has no keys to sign with; leave the commit unsigned, and say so to the user, who can sign it.";
  }
  if (!network && NETWORK_FAILED.test(output)) return describeNetwork(domains);
  if (WRITE_FAILED.test(output)) {
    return "The sandbox keeps that place read-only; the user can name more folders in the setting `writable`.";
  }
  const secret = READ_FAILED.test(output) && hidden.find((path) => output.includes(path));
  if (secret)
    return `The sandbox hides ${secret}: with unsandboxed, the user is asked to run it outside.`;
  if (!RIGHT_FAILED.test(output)) return undefined;
  return "The sandbox gives no rights of root, no mounts and no namespaces: with unsandboxed, the user is asked to run it outside.";
}

function describeNetwork(domains: readonly string[]): string {
  const all =
    "the user can allow hosts with the setting `domains`, or all with the setting `network`.";
  if (domains.length === 0) return `The sandbox has no network; ${all}`;
  return `The sandbox has no network but a proxy (HTTPS_PROXY) to ${domains.join(", ")}; ${all}`;
}
