import { resolve } from "node:path";
import type { AgentToolResult, Middleware, ToolInvocation } from "@gyre/agent";
import type { Toolset } from "@gyre/tools";
import type { Diagnostics } from "@gyre/tools/diagnostics";
import { findNamedFiles } from "../file-history/call-files.ts";
import type { Settings } from "../settings/settings.ts";

/**
 * Adds to the result of a call that changed files what language servers find wrong in them. Servers
 * are loaded and started by the first such call, and end with the agent.
 */
export class EditDiagnostics {
  readonly middleware: Middleware = { tool: (call, next) => this.#look(call, next) };
  readonly #toolset: Toolset;
  readonly #settings: Settings;
  #opened: Promise<Diagnostics> | undefined;

  constructor(toolset: Toolset, settings: Settings) {
    this.#toolset = toolset;
    this.#settings = settings;
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }

  async #look(
    call: ToolInvocation,
    next: () => Promise<AgentToolResult>,
  ): Promise<AgentToolResult> {
    const files = await findNamedFiles(call);
    const result = await next();
    if (!files || files.length === 0 || result.isError) return result;
    this.#opened ??= this.#open();
    const { root } = this.#toolset.env.workspace;
    const paths = files.map((file) => resolve(root, file));
    const text = await (await this.#opened).describe(paths, call.signal);
    if (text === undefined) return result;
    return { ...result, content: [...result.content, { type: "text", text }] };
  }

  async #open(): Promise<Diagnostics> {
    const { Diagnostics: Opened } = await import("@gyre/tools/diagnostics");
    const { languageServers = {}, hidden } = this.#settings;
    return new Opened(this.#toolset.env, {
      servers: Object.entries(languageServers).map(([name, { command, files }]) => ({
        ...{ name, files, commands: [command], isChosen: true },
      })),
      ...(hidden && { hidden }),
    });
  }
}
