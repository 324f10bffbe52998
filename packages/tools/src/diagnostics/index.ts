export { Diagnostics, type DiagnosticsOptions } from "./diagnostics.ts";
export { KNOWN_SERVERS, type LanguageServer } from "./language-servers.ts";
