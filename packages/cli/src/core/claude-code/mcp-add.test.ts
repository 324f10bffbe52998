import { describe, expect, it } from "vitest";
import { translateMcpAdd } from "./mcp-add.ts";

describe("gyre mcp add as it is written elsewhere", () => {
  it.each<[string, string]>([
    ["mcp add foo npx -y server --port 3", "mcp add foo -- npx -y server --port 3"],
    ["mcp add foo -- npx -y server", "mcp add foo -- npx -y server"],
    ["mcp add -s project foo npx server", "mcp add --project foo -- npx server"],
    ["mcp add --scope=user -e A=1 foo npx", "mcp add --env A=1 foo -- npx"],
    ["mcp add --transport http foo https://a.org/mcp", "mcp add foo https://a.org/mcp"],
    ["mcp add foo https://a.org/mcp -t sse -H X:1", "mcp add foo https://a.org/mcp --header X:1"],
    ["mcp add --config c.json foo npx", "mcp add --config c.json foo -- npx"],
    ["mcp list -y", "mcp list -y"],
    ["-p mcp add foo npx", "-p mcp add foo npx"],
    ["mcp add", "mcp add"],
  ])("%s is %s", (given, expected) => {
    expect(translateMcpAdd(given.split(" ")).join(" ")).toBe(expected);
  });

  it.each([
    ["mcp add -s everywhere foo npx", '--scope "everywhere" is none of: project, user, local.'],
    ["mcp add -t carrier foo npx", '--transport "carrier" is none of'],
  ])("%s is an error", (given, message) => {
    expect(() => translateMcpAdd(given.split(" "))).toThrow(message);
  });
});
