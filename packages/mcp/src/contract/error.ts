/** A call or a connection failed. `words`: what the server itself said, not to be trusted. */
export class McpError extends Error {
  readonly code = "mcp";
  readonly words: string | undefined;
  constructor(message: string, options: ErrorOptions & { words?: string } = {}) {
    super(message, options);
    this.name = "McpError";
    this.words = options.words;
  }
}
