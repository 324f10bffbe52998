import type { PermissionOption } from "@agentclientprotocol/sdk";

/** What a person may answer. */
export function permissionOptions(rule: string | undefined): PermissionOption[] {
  return [
    { optionId: "allow", name: "Allow", kind: "allow_once" },
    ...(rule === undefined
      ? []
      : [{ optionId: "always", name: `Always allow ${rule}`, kind: "allow_always" as const }]),
    { optionId: "reject", name: "Reject", kind: "reject_once" },
  ];
}
