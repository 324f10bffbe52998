/** `fetch`, as far as it is needed: what an application may put in its place. */
export type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
