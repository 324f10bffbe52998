/** Progress of a call, as a server reports it. */
export interface McpProgress {
  progress: number;
  total?: number;
  message?: string;
}
